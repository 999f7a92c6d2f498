// Command with runs a command with servers for the tests in the package of a store:
//
//	go run ./integration/servers/with go test ./lease/pgstore
//
// It starts each server, and sets the environment variable in which those tests find it. A variable
// that is set already stays. If a server is not installed, the command runs without its variable.
//
// To add a server, add it to all. If it runs this program again ([child.Self]), main must call its
// Main first.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// all are the servers: each with the variable that tests read, and what starts it and returns the
// variable's value.
var all = []struct {
	variable string
	start    func(context.Context) (value string, server io.Closer, err error)
}{
	{"TEST_POSTGRES", func(ctx context.Context) (string, io.Closer, error) {
		s, err := servers.Postgres(ctx)
		if err != nil {
			return "", nil, err
		}
		return s.DSN(), s, nil
	}},
	{"TEST_ETCD", func(ctx context.Context) (string, io.Closer, error) {
		c, err := etcd.Start(ctx, 1)
		if err != nil {
			return "", nil, err
		}
		return c.Endpoints()[0], c, nil
	}},
	{"TEST_S3", func(ctx context.Context) (string, io.Closer, error) {
		s, err := s3.Start(ctx)
		if err != nil {
			return "", nil, err
		}
		const bucket = "leases"
		user := url.UserPassword(s3.Root.AccessKey, s3.Root.SecretKey)
		return (&url.URL{Scheme: "http", User: user, Host: s.Address, Path: bucket}).String(), s, s.Bucket(ctx, bucket)
	}},
	{"TEST_KUBERNETES", func(ctx context.Context) (string, io.Closer, error) {
		s, err := kubernetes.Start(ctx)
		if err != nil {
			return "", nil, err
		}
		return s.Proxy(kubernetes.Token(kubernetes.Admin)), s, nil
	}},
}

func main() {
	etcd.Main()
	s3.Main()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, exec.CommandContext(ctx, os.Args[1], os.Args[2:]...))
	stop()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(max(ended.ExitCode(), 1)) // -1 if a signal ended it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		os.Exit(1)
	}
}

// run runs the command while the servers run.
func run(ctx context.Context, command *exec.Cmd) (err error) {
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Env = os.Environ()
	for _, s := range all {
		if os.Getenv(s.variable) != "" {
			continue
		}
		value, server, failed := s.start(ctx)
		if errors.Is(failed, child.ErrNotInstalled) {
			fmt.Fprintf(os.Stderr, "with: no %s: %v\n", s.variable, failed)
			continue
		}
		if server != nil {
			defer func() { err = errors.Join(err, server.Close()) }()
		}
		if failed != nil {
			return failed
		}
		command.Env = append(command.Env, s.variable+"="+value)
	}
	return command.Run()
}
