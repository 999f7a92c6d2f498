package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// Cluster is an etcd.
type Cluster struct {
	dir       string
	endpoints []string
	members   []*child.Server
}

// Start starts an etcd of n members, and returns when it answers. Its data is
// in a folder that Close removes. It is not synced to the disk: a crash of the machine loses data, not that of
// a member.
func Start(ctx context.Context, n int) (_ *Cluster, err error) {
	c := &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.dir, err = os.MkdirTemp("", "traceflake-etcd-"); err != nil {
		return nil, err
	}
	ports, err := child.Addresses(2 * n)
	if err != nil {
		return nil, err
	}
	c.endpoints = ports[:n]
	var initial []string
	for i, peer := range ports[n:] {
		initial = append(initial, fmt.Sprintf("member%d=http://%s", i, peer))
	}
	for i, peer := range ports[n:] {
		name := fmt.Sprintf("member%d", i)
		c.members = append(c.members, child.New("etcd "+name, func() *exec.Cmd {
			return child.Self(kind, name, filepath.Join(c.dir, name), "http://"+c.endpoints[i], "http://"+peer, strings.Join(initial, ","))
		}))
	}
	if err := c.Run(); err != nil {
		return nil, err
	}
	return c, c.Wait(ctx)
}

// ForTest is Start for a test, and Close when it ends.
func ForTest(tb testing.TB, n int) *Cluster {
	tb.Helper()
	return child.ForTest(tb, func(ctx context.Context) (*Cluster, error) { return Start(ctx, n) })
}

// Endpoints are the addresses of the members, host:port, running or not.
func (c *Cluster) Endpoints() []string { return c.endpoints }

// Member returns a member, to end and start it alone.
func (c *Cluster) Member(i int) *child.Server { return c.members[i] }

// Run starts all members, with the data they had.
func (c *Cluster) Run() error { return c.each((*child.Server).Run) }

// Kill ends all members as a crash does.
func (c *Cluster) Kill() error { return c.each((*child.Server).Kill) }

func (c *Cluster) each(call func(*child.Server) error) error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, call(m))
	}
	return errors.Join(errs...)
}

// Wait returns when the cluster makes progress.
func (c *Cluster) Wait(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return child.Ready(ctx, func(ctx context.Context) error {
		_, err := client.Get(ctx, "is anybody there") // linearizable
		return err
	}, c.members...)
}

// Leader returns the member that leads.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	client, err := c.Client()
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	for {
		for i, endpoint := range c.endpoints {
			call, cancel := context.WithTimeout(ctx, time.Second)
			status, err := client.Status(call, endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("etcd: no leader: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Client returns a client of all members; the caller must close it.
func (c *Cluster) Client() (*clientv3.Client, error) {
	// Unreachable members are expected in tests, so nothing is logged.
	return clientv3.New(clientv3.Config{Endpoints: c.endpoints, Logger: zap.NewNop()})
}

// ClientForTest returns a client that is closed when the test ends.
func (c *Cluster) ClientForTest(tb testing.TB) *clientv3.Client {
	tb.Helper()
	client, err := c.Client()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Close kills every member and removes the data.
func (c *Cluster) Close() error {
	err := c.Kill()
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}
