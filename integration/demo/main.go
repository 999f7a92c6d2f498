// Command demo shows traceflake at work: two HTTP services; traces of old clients, new clients and
// clients without headers; stored in ClickHouse by the OpenTelemetry Collector's exporter, and
// found again by their IDs.
//
// It needs no server: ClickHouse runs inside the process, downloaded by `make engines`. If
// TRACEFLAKE_CLICKHOUSE_DSN is set, the demo uses that server.
//
// The services' IDs come from nodes leased from a store, by default a file in the user's cache
// folder that all runs share. -store names another store, or none. A file has its own secret. For
// servers, TRACEFLAKE_SECRET_FILE names the file with the fleet's secret; without it each run
// draws a new one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/integration/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type options struct {
	requests int
	history  int
	store    string
	serve    string
	host     string // of edge, the same as in serve
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.requests, "requests", 200, "send this `number` of requests and check the stored spans")
	flags.IntVar(&o.history, "history", 2_000_000, "first fill the table with this `number` of spans, dated today")
	flags.StringVar(&o.store, "store", "", "lease nodes from `URL`: bolt:PATH, postgres://…, etcd://…, or none (default a file in the user's cache folder)")
	flags.StringVar(&o.serve, "serve", "", "serve a page with the traces on this `address`, such as 127.0.0.1:8080, until Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see -h", flags.Arg(0))
	case o.requests < 0:
		return o, fmt.Errorf("-requests %d: must not be negative", o.requests)
	case o.history < 0:
		return o, fmt.Errorf("-history %d: must not be negative", o.history)
	case o.requests == 0 && o.serve == "":
		return o, errors.New("-requests 0 without -serve: nothing to do")
	case o.serve == "":
		o.host = loopback
		return o, nil
	}
	if o.host, _, err = net.SplitHostPort(o.serve); err != nil {
		return o, fmt.Errorf("-serve %s: %w, want host:port", o.serve, err)
	}
	return o, nil
}

// closing limits how long the shutdown may take.
const closing = 30 * time.Second

// run runs the demo and writes its output to stdout.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	out := newScreen(stdout)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { out.phase("Note", "%s", strings.ReplaceAll(err.Error(), "\n\t", " ")) }))

	var listener net.Listener // of the page
	if o.serve != "" {
		if listener, err = net.Listen("tcp", o.serve); err != nil {
			return fmt.Errorf("cannot serve on %s: %w", o.serve, err)
		}
		defer func() { _ = listener.Close() }() // if serving never started
	}

	ids, err := openSource(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, ids.close(ctx))
		if n := ids.ids.Fallbacks(); n > 0 {
			out.phase("IDs", "%d traces or spans got random IDs because there was no lease", n)
		}
	}()
	out.phase("IDs", "from %s", ids.name)

	engine, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	find, err := newFinder(engine, ids)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, find.close()) }()
	out.phase("ClickHouse", "%s, in the new database %s", find.server, engine.Database())

	if ids.ready(ctx) != nil && ctx.Err() == nil {
		out.phase("IDs", "random until the store grants a lease")
	}

	if err := find.prepare(ctx); err != nil {
		return err
	}
	spans, err := newPipeline(ctx, engine.DSN(), ids.ids)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		if lost := spans.close(ctx); !errors.Is(err, errLost) {
			err = errors.Join(err, lost)
		}
		out.phase("Spans", "%d stored, %d lost", spans.stored.Load(), spans.lost.Load())
	}()

	if err := find.compare(ctx); err != nil {
		return err
	}
	if o.history > 0 {
		begun := time.Now()
		out.phase("History", "%d spans since midnight UTC, made by ClickHouse", o.history)
		bar := out.progress(o.history)
		err := find.fill(ctx, o.history, begun.Add(-time.Second), bar.add)
		find.since = begun
		bar.done()
		if err != nil {
			return err
		}
		out.printf("%11sin %.1f s\n", "", time.Since(begun).Seconds())
		if o.requests == 0 {
			if err := find.merge(ctx); err != nil {
				return err
			}
		}
	}
	services, err := startServices(spans, o.host)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, services.close(ctx))
	}()
	out.phase("Services", "edge at %s calls orders at %s", services.edge.url, services.orders.url)

	if o.requests > 0 {
		if err := demonstrate(ctx, out, o.requests, services.edge.url, spans, find); err != nil {
			return err
		}
	}
	if listener != nil {
		return serve(ctx, out, listener, services.edge, spans, find)
	}
	return nil
}

// serve shows a page with the traces until ctx ends.
func serve(ctx context.Context, out *screen, listener net.Listener, edge *service, spans *pipeline, find *finder) error {
	page, err := startPage(listener, spans, find, edge)
	if err != nil {
		return err
	}
	out.phase("Serving", "until Ctrl-C: %s lists the traces and can start new ones from the browser", page.url)
	out.printf("%11sor try this, with the x-trace-id of the response in the second line:\n", "")
	out.printf("  curl -i -X POST %s/checkout\n", edge.url)
	out.printf("  curl %s/traces/TRACE_ID\n", page.url)
	<-ctx.Done()
	out.printf("\n")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	return page.close(ctx)
}

// demonstrate sends requests, checks that each left the expected spans, and shows one trace.
func demonstrate(ctx context.Context, out *screen, n int, url string, spans *pipeline, find *finder) error {
	plan := newPlan(n)
	out.phase("Requests", "%s", plan)
	bar := out.progress(n)
	sent, err := plan.send(ctx, url, bar.add)
	bar.done()
	if err != nil {
		return err
	}

	if err := spans.flush(ctx); err != nil {
		return err
	}
	stored, err := find.summaries(ctx)
	if err != nil {
		return err
	}
	verdict, err := check(sent, stored)
	if err != nil {
		return err
	}
	out.phase("Check", "%s", verdict)

	out.phase("Merge", "merging the new spans with the rest, as ClickHouse would do later in the background")
	if err := find.merge(ctx); err != nil {
		return err
	}
	recent, err := find.recent(ctx)
	if err != nil {
		return err
	}
	if recent.what != "" {
		find.atStart = []costs{recent}
	}
	id := mostTelling(sent)
	t, err := find.trace(ctx, id)
	if err != nil {
		return err
	}
	whose := "sent by " + sent[id].kind.String()
	if sent[id].kind == bare {
		whose = "made by edge for " + bare.String()
	}
	out.phase("Find", "trace %s, %s", id, whose)
	out.waterfall(t)
	return nil
}
