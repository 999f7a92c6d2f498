// Command demo shows traceflake at work: clients of three kinds call the two services of
// examples/otelhttp, the OpenTelemetry Collector's exporter stores their spans in ClickHouse, and a
// trace is found by its ID.
//
// It needs no server: ClickHouse runs inside the process, downloaded by `make engines`. If
// TRACEFLAKE_CLICKHOUSE_DSN is set, the demo uses that server. TRACEFLAKE_STORE and the services'
// other variables work as usual; without a store, nodes are leased from a temporary file.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/settings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, 200, 2_000_000)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run sends requests, checks that all their spans are stored alongside a history, and finds a
// trace.
func run(ctx context.Context, out io.Writer, requests, history int) (err error) {
	engine, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := createTables(ctx, engine, history); err != nil {
		return err
	}
	fmt.Fprintf(out, "ClickHouse  %d spans of today, generated, in %s.otel_traces\n",
		history, engine.Database())

	sent, err := throughServices(ctx, out, engine.DSN(), requests)
	if err != nil {
		return err
	}
	if err := check(ctx, engine, sent); err != nil {
		return err
	}
	fmt.Fprintf(out, "Stored      all %d spans of %d traces; none was lost\n",
		len(sent)*spansOfRequest, len(sent))
	return find(ctx, out, engine, sent[0])
}

// The spans are also in a table as the Collector's exporter creates it, to compare with.
const (
	exporters      = "exporter_traces"
	exportersTable = `CREATE TABLE exporter_traces (Timestamp DateTime64(9), TraceId String,
		ServiceName LowCardinality(String), SpanKind LowCardinality(String),
		SpanName LowCardinality(String), Duration UInt64,
		INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1)
		ENGINE = MergeTree PARTITION BY toDate(Timestamp)
		ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))`
	copyTo = "INSERT INTO exporter_traces SELECT Timestamp, TraceId, ServiceName, SpanKind, " +
		"SpanName, Duration FROM otel_traces"
)

// createTables creates the default table with a history, which ClickHouse generates: traces of
// eight spans since midnight, because a day is a partition. The exporter's table has the same.
func createTables(ctx context.Context, engine *servers.Engine, history int) error {
	statements, err := clickhouse.Schema{Table: "otel_traces"}.Statements()
	if err != nil {
		return err
	}
	generate := fmt.Sprintf(`INSERT INTO otel_traces
			(Timestamp, TraceId, SpanId, ServiceName, SpanName, Duration)
		WITH toStartOfDay(now64(3)) AS midnight, dateDiff('ms', midnight, now64(3)) AS passed
		SELECT start + INTERVAL number %% 8 MILLISECOND,
			traceIDAt(start, 0, sipHash64(intDiv(number, 8))),
			leftPad(lower(hex(sipHash64(number))), 16, '0'),
			concat('service-', toString(number %% 50)), 'GET /', 1000000
		FROM (SELECT number,
			addMilliseconds(midnight, intDiv(passed * intDiv(number, 8) * 8, %d)) AS start
			FROM numbers(%[1]d))`, history)
	return engine.Exec(ctx, append(statements, generate, exportersTable, copyTo)...)
}

// throughServices runs orders, shop and the Collector's exporter while it sends requests, and
// returns when they have ended: all spans are then stored.
func throughServices(ctx context.Context, out io.Writer, dsn string, requests int) (_ []request,
	err error) {
	endpoint, stop, err := startCollector(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	dir, err := os.MkdirTemp("", "traceflake-demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env := append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint)
	if _, set := os.LookupEnv(settings.Store); !set {
		env = append(env, settings.Store+"=file:"+filepath.Join(dir, "leases"))
	}
	program, err := build(ctx, dir, "examples/otelhttp")
	if err != nil {
		return nil, err
	}
	var calls string // the address that shop calls
	for _, name := range []string{"orders", "shop"} {
		s := &child.Server{Name: name}
		s.Command = func() *exec.Cmd {
			cmd := child.Foreign(program, name, s.Address)
			cmd.Env = append(slices.Clone(env), "ORDERS_URL=http://"+calls)
			return cmd
		}
		s.Answers = s.Listens
		defer func() { // shop ends first
			if stopped := s.Stop(); err == nil {
				err = stopped
			}
			fmt.Fprint(out, s.Output())
		}()
		if err := s.Start(ctx); err != nil {
			return nil, err
		}
		calls = s.Address
	}
	fmt.Fprintf(out, "Requests    %d to shop, which calls orders\n", requests)
	return send(ctx, "http://"+calls+"/checkout", requests)
}
