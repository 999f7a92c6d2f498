// Command demo shows traceflake at work: two HTTP services; traces of old clients, new clients and
// clients without headers; stored in ClickHouse by the OpenTelemetry Collector's exporter, and
// found again by their IDs.
//
// It needs no server: ClickHouse runs inside the process, downloaded by `make engines`. If
// TRACEFLAKE_CLICKHOUSE_DSN is set, the demo uses that server.
//
// The services' IDs come from package setup, so the environment says where nodes are leased. Without
// TRACEFLAKE_STORE it is a file in the user's cache folder that all runs share.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"slices"
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
	serve    string
	host     string // of edge, the same as in serve
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.requests, "requests", 200, "send this `number` of requests and check the stored spans")
	flags.IntVar(&o.history, "history", 2_000_000, "first fill the table with this `number` of spans, dated today")
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

// program is what runs, in the order in which it started.
type program struct {
	options
	out      *log.Logger  // safe for concurrent use
	listener net.Listener // of the page, or nil
	find     *finder
	spans    *pipeline
	services *services
	closers  []func(context.Context) error
}

// phase starts a new part of the output.
func (d *program) phase(name, format string, args ...any) {
	d.out.Printf("%-10s %s", name, fmt.Sprintf(format, args...))
}

// atEnd adds what close has to do.
func (d *program) atEnd(f func(context.Context) error) { d.closers = append(d.closers, f) }

// close ends everything, the latest first, even if ctx is over.
func (d *program) close(ctx context.Context) (err error) {
	for _, f := range slices.Backward(d.closers) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		err = errors.Join(err, f(ctx))
		cancel()
	}
	return err
}

// run runs the demo and writes its output to stdout.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	d := &program{out: log.New(stdout, "", 0)}
	if d.options, err = parse(args); err != nil {
		return err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { d.phase("Note", "%s", strings.ReplaceAll(err.Error(), "\n\t", " ")) }))
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	for _, step := range []func(context.Context) error{d.listen, d.store, d.fill, d.start, d.demonstrate, d.show} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// listen takes the page's address first, so that a wrong one is reported at once.
func (d *program) listen(context.Context) (err error) {
	if d.serve == "" {
		return nil
	}
	if d.listener, err = net.Listen("tcp", d.serve); err != nil {
		return fmt.Errorf("cannot serve on %s: %w", d.serve, err)
	}
	d.atEnd(func(context.Context) error {
		_ = d.listener.Close() // the page may have closed it
		return nil
	})
	return nil
}

// store starts the IDs, ClickHouse with its tables, and the pipeline between them.
func (d *program) store(ctx context.Context) error {
	ids, err := openIDs(ctx)
	if err != nil {
		return err
	}
	d.atEnd(func(ctx context.Context) error {
		err := ids.Shutdown(ctx)
		if n := ids.Fallbacks(); n > 0 {
			d.phase("IDs", "%d traces or spans got random IDs because there was no lease", n)
		}
		return err
	})
	engine, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	d.atEnd(func(context.Context) error { return engine.Close() })
	if d.find, err = newFinder(engine, ids.Keyring()); err != nil {
		return err
	}
	d.atEnd(func(context.Context) error { return d.find.close() })
	d.phase("ClickHouse", "%s, in the new database %s", d.find.server, engine.Database())
	if err := d.find.prepare(ctx); err != nil {
		return err
	}
	if d.spans, err = newPipeline(ctx, engine.DSN(), ids); err != nil {
		return err
	}
	d.atEnd(func(ctx context.Context) error {
		err := d.spans.close(ctx)
		d.phase("Spans", "%d stored, %d lost", d.spans.stored.Load(), d.spans.lost.Load())
		if errors.Is(err, errLost) {
			return nil // flush has returned it
		}
		return err
	})
	return d.find.compare(ctx)
}

// fill makes the history.
func (d *program) fill(ctx context.Context) error {
	if d.history == 0 {
		return nil
	}
	begun := time.Now()
	d.phase("History", "%d spans since midnight UTC, generated by ClickHouse", d.history)
	if err := d.find.fill(ctx, d.history, begun.Add(-time.Second)); err != nil {
		return err
	}
	d.find.since = begun
	d.phase("", "in %.1f s", time.Since(begun).Seconds())
	if d.requests == 0 {
		return d.find.merge(ctx)
	}
	return nil
}

func (d *program) start(context.Context) (err error) {
	if d.services, err = startServices(d.spans, d.host); err != nil {
		return err
	}
	d.atEnd(d.services.close)
	d.phase("Services", "edge at %s calls orders at %s", d.services.edge.url, d.services.orders.url)
	return nil
}

// show serves a page with the traces until ctx ends.
func (d *program) show(ctx context.Context) error {
	if d.listener == nil {
		return nil
	}
	page, err := startPage(d.listener, d.spans, d.find, d.services.edge)
	if err != nil {
		return err
	}
	d.atEnd(page.close)
	d.phase("Serving", "until Ctrl-C: %s lists the traces and can start new ones from the browser", page.url)
	d.phase("", "or try this, with the x-trace-id of the response in the second line:")
	d.out.Printf("  curl -i -X POST %s/checkout\n  curl %s/traces/TRACE_ID", d.services.edge.url, page.url)
	<-ctx.Done()
	return nil
}

// demonstrate sends requests, checks that each left the expected spans, and shows one trace.
func (d *program) demonstrate(ctx context.Context) error {
	if d.requests == 0 {
		return nil
	}
	find, plan := d.find, newPlan(d.requests)
	d.phase("Requests", "%s", plan)
	sent, err := plan.send(ctx, d.services.edge.url)
	if err != nil {
		return err
	}

	if err := d.spans.flush(ctx); err != nil {
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
	d.phase("Check", "%s", verdict)

	d.phase("Merge", "merging the new spans with the rest, as ClickHouse would do later in the background")
	if err := find.merge(ctx); err != nil {
		return err
	}
	recent, err := find.recent(ctx)
	if err != nil {
		return err
	}
	if recent.What != "" {
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
	d.phase("Find", "trace %s, %s", id, whose)
	var text strings.Builder
	waterfall(&text, t)
	d.out.Print(text.String())
	return nil
}
