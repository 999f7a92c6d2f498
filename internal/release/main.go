// Command release releases the modules of this repository, and first checks that others can use
// them.
//
//	go run ./internal/release consumers
//	go run ./internal/release tidy
//	go run ./internal/release VERSION
//	go run ./internal/release -publish VERSION
//
// The first form serves the tree as the next version from a file-based module proxy and does,
// outside of the repository, what users do. The second runs go mod tidy with that proxy. The third
// is a dry run of a release; -publish makes the commit and the tags. Nothing is pushed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/traceflake/traceflake/integration/servers/etcd"
	"github.com/traceflake/traceflake/integration/servers/s3"
)

func main() {
	etcd.Main()
	s3.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	publish := flags.Bool("publish", false, "make the commit and the tags")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want a version such as v0.1.0, consumers or tidy")
	}
	root, err := command(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if version := flags.Arg(0); version != "consumers" && version != "tidy" {
		return release(ctx, root, version, *publish, out)
	}
	t, err := openTree(root)
	if err != nil {
		return err
	}
	if flags.Arg(0) == "tidy" {
		return t.tidyAll(ctx, out)
	}
	return t.consumers(ctx, t.next, out)
}

// command returns a program's standard output without surrounding white space. The error includes
// its standard error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	output, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s%s", err, output, exit.Stderr)
		}
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return string(trim(output)), nil
}
