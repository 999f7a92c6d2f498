package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cluster is an etcd. Its methods may be called by several goroutines, but not
// at once for the same member.
type Cluster struct {
	dir     string
	members []*process
	initial string
}

type process struct {
	name, client, peer string

	mu    sync.Mutex
	cmd   *exec.Cmd // nil when it is not running
	log   *bytes.Buffer
	ended chan struct{}
}

// Start starts an etcd of n members, and returns when it answers. Its data is
// in a folder that Close removes.
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
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	var initial []string
	for i := range n {
		p := &process{
			name:   fmt.Sprintf("member%d", i),
			client: "http://" + ports[2*i],
			peer:   "http://" + ports[2*i+1],
		}
		c.members = append(c.members, p)
		initial = append(initial, p.name+"="+p.peer)
	}
	c.initial = strings.Join(initial, ",")
	for i := range n {
		if err := c.Run(i); err != nil {
			return nil, err
		}
	}
	return c, c.Wait(ctx)
}

// ForTest is Start for a test, and Close when it ends.
func ForTest(tb testing.TB, n int) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := Start(ctx, n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Endpoints are the addresses of the members, host:port, running or not.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, p := range c.members {
		all = append(all, strings.TrimPrefix(p.client, "http://"))
	}
	return all
}

// Run starts member i, with the data it had.
func (c *Cluster) Run(i int) error {
	p := c.members[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envName+"="+p.name, envDir+"="+filepath.Join(c.dir, p.name),
		envClient+"="+p.client, envPeer+"="+p.peer, envCluster+"="+c.initial)
	p.log = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if _, err := cmd.StdinPipe(); err != nil { // open while this process lives
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("etcd: %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.cmd, p.ended = cmd, ended
	return nil
}

// Kill ends member i as a crash does.
func (c *Cluster) Kill(i int) error {
	p := c.members[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.ended
	p.cmd = nil
	return err
}

// Signal sends a signal to member i, SIGSTOP or SIGCONT for instance.
func (c *Cluster) Signal(i int, s syscall.Signal) error {
	p := c.members[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("etcd: %s is not running", p.name)
	}
	return p.cmd.Process.Signal(s)
}

// Wait returns when the cluster makes progress.
func (c *Cluster) Wait(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for {
		call, cancel := context.WithTimeout(ctx, time.Second)
		_, err := client.Get(call, "is anybody there") // linearizable
		cancel()
		if err == nil {
			return nil
		}
		for _, p := range c.members {
			if text, ended := p.failure(); ended {
				return fmt.Errorf("etcd: %s ended: %s", p.name, text)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd: %w: %w", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// failure is the output of a member that ended by itself.
func (p *process) failure() (text string, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return "", false
	}
	select {
	case <-p.ended:
		return p.log.String(), true
	default:
		return "", false
	}
}

// Leader returns the member that leads.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	client, err := c.Client()
	if err != nil {
		return 0, err
	}
	defer func() { _ = client.Close() }()
	for {
		for i, endpoint := range c.Endpoints() {
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
	return clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: quiet})
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
	var errs []error
	for i := range c.members {
		errs = append(errs, c.Kill(i))
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// freePorts finds ports that are free now.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		ports = append(ports, l.Addr().String())
	}
	return ports, nil
}
