// Command with runs a command with servers for the tests in the package of a store:
//
//	go run ./integration/servers/with go test ./lease/pgstore
//
// It starts each server, and sets the environment variable in which those tests find it. A variable
// that is set already stays. If a server is not installed, its variable is "none", which skips its
// tests; in CI they fail.
//
// To add a server, add it to all.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

// all has a function for each variable that tests read. It starts the server and returns the
// variable's value.
var all = map[string]func(context.Context) (value string, server io.Closer, err error){
	"TRACEFLAKETEST_POSTGRES": serving(servers.Postgres, (*servers.PostgresServer).DSN),
	"TRACEFLAKETEST_ETCD": serving(
		func(ctx context.Context) (*etcd.Cluster, error) { return etcd.Start(ctx, 1) },
		func(c *etcd.Cluster) string { return c.Endpoints()[0] }),
	"TRACEFLAKETEST_S3": serving(s3.Start, func(s *s3.Server) string {
		user := url.UserPassword(s3.Root.AccessKey, s3.Root.SecretKey)
		return (&url.URL{Scheme: "http", User: user, Host: s.Address, Path: s3.Bucket}).String()
	}),
	"TRACEFLAKETEST_KUBERNETES": serving(kubernetes.Start,
		func(s *kubernetes.Server) string { return s.Proxy(kubernetes.Token(kubernetes.Admin)) }),
}

func serving[S io.Closer](start func(context.Context) (S, error),
	value func(S) string) func(context.Context) (string, io.Closer, error) {
	return func(ctx context.Context) (string, io.Closer, error) {
		s, err := start(ctx)
		if err != nil {
			return "", nil, err
		}
		return value(s), s, nil
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	// Ctrl-C ends the command, and then the servers are closed.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := run(exec.Command(os.Args[1], os.Args[2:]...)); err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		os.Exit(1)
	}
}

// run runs the command while the servers run.
func run(command *exec.Cmd) (err error) {
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = os.Environ()
	for _, variable := range slices.Sorted(maps.Keys(all)) {
		if os.Getenv(variable) != "" {
			continue
		}
		value, server, failed := all[variable](context.Background())
		if errors.Is(failed, child.ErrNotInstalled) {
			fmt.Fprintf(os.Stderr, "with: tests without %s are skipped: %v\n", variable, failed)
			if os.Getenv("CI") == "" {
				command.Env = append(command.Env, variable+"=none")
			}
			continue
		}
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		command.Env = append(command.Env, variable+"="+value)
	}
	return command.Run()
}
