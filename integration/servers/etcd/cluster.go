// Package etcd runs a real etcd for tests, of one member or of several. Each member is a process,
// so that it can be killed and stopped: the test's own program, started again as etcd.
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

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// kind is the kind of a member's process.
const kind = "etcd"

func init() {
	child.Main(kind, func(flags []string) error {
		etcdmain.Main(append([]string{kind}, flags...))
		return errors.New("it ended")
	})
}

// Cluster is an etcd.
type Cluster struct {
	*clientv3.Client // of all members, running or not
	Members          []*child.Server
	dir              string
}

// Start starts an etcd of n members, and returns when it answers. Its data is in a folder that
// Close removes. It is not synced to the disk: a crash of the machine loses data, but a crash of a
// member does not.
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
	var urls, initial []string
	for i, port := range ports {
		urls = append(urls, "http://"+port)
		if i >= n {
			initial = append(initial, fmt.Sprintf("member%d=%s", i-n, advertised(n, urls[i])))
		}
	}
	if c.Client, err = clientv3.New(
		clientv3.Config{Endpoints: ports[:n], Logger: zap.NewNop()}); err != nil {
		return nil, err
	}
	for i := range n {
		name, client, peer := fmt.Sprint("member", i), urls[i], urls[n+i]
		c.Members = append(c.Members,
			&child.Server{Name: "etcd " + name, Command: func() *exec.Cmd {
				return child.Self(kind, "--name", name, "--data-dir", filepath.Join(c.dir, name),
					"--listen-client-urls", client, "--advertise-client-urls", client,
					"--listen-peer-urls", peer, "--initial-advertise-peer-urls",
					advertised(n, peer),
					"--initial-cluster", strings.Join(initial, ","), "--log-level", "error",
					"--unsafe-no-fsync",
					"--heartbeat-interval", "50", "--election-timeout", "500",
					"--bcrypt-cost", "4") // a login in milliseconds, even under the race detector
			}})
	}
	if err := c.Run(); err != nil {
		return nil, err
	}
	return c, c.Wait(ctx)
}

// advertised returns the URL by which the other members know one, of which etcd computes the
// cluster's ID. All clusters of one member have the same, as those of one Helm chart.
func advertised(members int, url string) string {
	if members == 1 {
		return "http://etcd-0:2380"
	}
	return url
}

// ForTest is Start for a test, and Close when it ends.
func ForTest(tb testing.TB, n int) *Cluster {
	tb.Helper()
	return child.ForTest(tb, func(ctx context.Context) (*Cluster, error) { return Start(ctx, n) })
}

// Run starts all members, with the data they had.
func (c *Cluster) Run() error { return c.each((*child.Server).Run) }

// Kill ends all members as a crash does.
func (c *Cluster) Kill() error { return c.each((*child.Server).Kill) }

func (c *Cluster) each(call func(*child.Server) error) error {
	var errs []error
	for _, m := range c.Members {
		errs = append(errs, call(m))
	}
	return errors.Join(errs...)
}

// Wait returns when the cluster makes progress.
func (c *Cluster) Wait(ctx context.Context) error {
	return child.Ready(ctx, func(ctx context.Context) error {
		_, err := c.Get(ctx, "is anybody there") // linearizable
		return err
	}, c.Members...)
}

// Close kills every member and removes the data.
func (c *Cluster) Close() error {
	err := c.Kill()
	if c.Client != nil {
		err = errors.Join(err, c.Client.Close())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
