// Command demo shows traceflake at work: the two services of examples/otelhttp send their spans
// through the OpenTelemetry Collector's exporter to ClickHouse, and traceflake decodes the ID of a
// response and finds its trace.
//
// It needs no server: ClickHouse runs as a child, downloaded by `make engines`. If
// TRACEFLAKETEST_CLICKHOUSE_DSN is set, the demo uses that server. TRACEFLAKE_STORE and the
// services' other variables work as usual; without a store, nodes are leased from a temporary
// directory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run sends a request through the services, and shows its ID and its trace.
func run(ctx context.Context, out io.Writer) (err error) {
	engine, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	statements, err := clickhouse.Schema{}.Statements()
	if err == nil {
		err = engine.Exec(ctx, statements...)
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "traceflake-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env := os.Environ()
	if _, set := os.LookupEnv("TRACEFLAKE_STORE"); !set {
		env = append(env, "TRACEFLAKE_STORE=file:"+filepath.Join(dir, "leases"))
	}
	id, err := request(ctx, dir, env, engine.DSN())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "$ curl -i http://shop/checkout\n%s: %s\n", xtraceid.DefaultHeader, id)
	traceflake, err := build(ctx, dir, "cmd/traceflake")
	if err != nil {
		return err
	}
	for _, subcommand := range []string{"inspect", "trace"} {
		cmd := exec.CommandContext(ctx, traceflake, subcommand, id)
		cmd.Env = append(slices.Clone(env), "TRACEFLAKE_CLICKHOUSE_DSN="+engine.DSN())
		fmt.Fprintf(out, "\n$ traceflake %s %s\n", subcommand, id)
		if cmd.Stdout, cmd.Stderr = out, out; cmd.Run() != nil {
			return fmt.Errorf("%s failed", subcommand)
		}
	}
	return nil
}

// request starts the Collector, orders and shop, sends a request to shop, which calls orders, and
// returns the trace ID of the response. Everything has ended then, and all spans are stored.
func request(ctx context.Context, dir string, env []string, dsn string) (id string, err error) {
	endpoint, stop, err := startCollector(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	program, err := build(ctx, dir, "examples/otelhttp")
	if err != nil {
		return "", err
	}
	var calls string // the address that shop calls
	for _, name := range []string{"orders", "shop"} {
		s := &child.Server{Name: name}
		s.Command = func() *exec.Cmd {
			cmd := child.Foreign(program, name, s.Address)
			cmd.Env = append(slices.Clone(env), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint,
				"ORDERS_URL=http://"+calls)
			return cmd
		}
		s.Answers = s.Listens
		defer func() { err = errors.Join(err, s.Stop()) }() // shop ends first
		if err := s.Start(ctx); err != nil {
			return "", err
		}
		calls = s.Address
	}
	response, err := http.Get("http://" + calls + "/checkout")
	if err != nil {
		return "", err
	}
	return response.Header.Get(xtraceid.DefaultHeader), response.Body.Close()
}

// build builds a program of this repository into a folder, and returns its path.
func build(ctx context.Context, dir, folder string) (string, error) {
	program := filepath.Join(dir, path.Base(folder))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/traceflake/traceflake/"+folder)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, text)
	}
	return program, nil
}
