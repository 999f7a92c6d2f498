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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/integration/servers"
	_ "github.com/traceflake/traceflake/lease/etcdstore" // etcd://
	_ "github.com/traceflake/traceflake/lease/pgstore"   // postgres://
	"github.com/traceflake/traceflake/setup"
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
	case o.requests < 0 || o.history < 0:
		return o, fmt.Errorf("-requests %d -history %d: neither can be negative", o.requests, o.history)
	case o.requests == 0 && o.serve == "":
		return o, errors.New("-requests 0 without -serve: nothing to do")
	}
	return o, nil
}

// program is what runs.
type program struct {
	out     *log.Logger // safe for concurrent use
	ids     *setup.IDs
	find    *finder
	spans   *pipeline
	edge    *service
	closers []func(context.Context) error
}

// phase starts a new part of the output.
func (d *program) phase(name, format string, args ...any) {
	d.out.Printf("%-10s %s", name, fmt.Sprintf(format, args...))
}

// atEnd adds what close has to do.
func (d *program) atEnd(f func(context.Context) error) { d.closers = append(d.closers, f) }

// close ends everything, the latest first, even if ctx is over.
func (d *program) close(ctx context.Context) (err error) {
	const limit = 30 * time.Second // for each
	for _, f := range slices.Backward(d.closers) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		err = errors.Join(err, f(ctx))
		cancel()
	}
	return err
}

// run runs the demo and writes its output to stdout.
func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	d := &program{out: log.New(stdout, "", 0)}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { d.phase("Note", "%s", strings.ReplaceAll(err.Error(), "\n\t", " ")) }))
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	var listener net.Listener // first, so that a wrong address is reported at once
	if o.serve != "" {
		if listener, err = net.Listen("tcp", o.serve); err != nil {
			return fmt.Errorf("-serve: %w", err)
		}
		d.atEnd(func(context.Context) error {
			_ = listener.Close() // the page may have closed it
			return nil
		})
	}
	if err := d.openIDs(ctx); err != nil {
		return err
	}
	if err := d.openClickHouse(ctx, o.history); err != nil {
		return err
	}
	if err := d.startServices(host(listener)); err != nil {
		return err
	}
	if o.requests > 0 {
		if err := d.demonstrate(ctx, o.requests); err != nil {
			return err
		}
	} else if err := d.find.merge(ctx); err != nil {
		return err
	}
	if listener != nil {
		return d.show(ctx, listener)
	}
	return nil
}

// host returns the address on which edge listens: that of the page, which calls it.
func host(page net.Listener) string {
	if page == nil {
		return loopback
	}
	return page.Addr().(*net.TCPAddr).IP.String()
}

// openIDs does what a service does. If the environment has no store, nodes are leased from a file
// in the user's cache folder, which all runs share.
func (d *program) openIDs(ctx context.Context) error {
	config, err := setup.Env()
	if err != nil {
		return err
	}
	if _, set := os.LookupEnv(setup.StoreVar); !set {
		folder, err := os.UserCacheDir()
		if err == nil {
			folder = filepath.Join(folder, "traceflake")
			err = os.MkdirAll(folder, 0o700)
		}
		if err != nil {
			return fmt.Errorf("no folder for leases: %w; set %s= to run without leases", err, setup.StoreVar)
		}
		config.Store = "bolt:" + filepath.Join(folder, "demo.db")
	}
	if d.ids, err = config.Open(ctx); err != nil {
		return err
	}
	d.atEnd(func(ctx context.Context) error {
		err := d.ids.Shutdown(ctx)
		if n := d.ids.Fallbacks(); n > 0 {
			d.phase("IDs", "%d traces or spans got random IDs because there was no lease", n)
		}
		return err
	})
	return nil
}

// openClickHouse starts ClickHouse with its tables, the pipeline into it, and the history.
func (d *program) openClickHouse(ctx context.Context, history int) error {
	engine, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	d.atEnd(func(context.Context) error { return engine.Close() })
	if d.find, err = newFinder(engine, d.ids.Keyring()); err != nil {
		return err
	}
	d.atEnd(func(context.Context) error { return d.find.conn.Close() })
	d.phase("ClickHouse", "in the new database %s", engine.Database())
	if err := d.find.createTables(ctx); err != nil {
		return err
	}
	if d.spans, err = newPipeline(ctx, engine.DSN(), d.ids); err != nil {
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
	if history == 0 {
		return nil
	}
	begun := time.Now()
	d.phase("History", "%d spans since midnight UTC, generated by ClickHouse", history)
	if err := d.find.fill(ctx, history, begun.Add(-time.Second)); err != nil {
		return err
	}
	d.phase("", "in %.1f s", time.Since(begun).Seconds())
	return nil
}

// demonstrate sends requests, checks that each left the expected spans, and shows one trace.
func (d *program) demonstrate(ctx context.Context, requests int) error {
	begun := time.Now()
	d.phase("Requests", "%d to edge, %d at a time", requests, concurrency)
	sent, err := send(ctx, d.edge.url, requests)
	if err != nil {
		return err
	}
	for i, c := range clients {
		d.phase("", "%d from %s", (requests+len(clients)-1-i)/len(clients), c.name)
	}
	if err := d.spans.flush(ctx); err != nil {
		return err
	}
	stored, err := d.find.summaries(ctx, begun)
	if err != nil {
		return err
	}
	verdict, err := check(sent, stored)
	if err != nil {
		return err
	}
	d.phase("Check", "%s", verdict)
	first := sent[0] // its ID is edge's, which the secret decodes
	fresh, err := d.find.measure(ctx, "The same before the merge: a new trace is in a small part, which costs the same to read in any order", first.id.String())
	if err != nil {
		return err
	}
	d.phase("Merge", "merging the new spans with the rest, as ClickHouse would do later in the background")
	if err := d.find.merge(ctx); err != nil {
		return err
	}
	var ids []string
	for _, r := range sent[:min(len(sent), 100)] {
		ids = append(ids, r.id.String())
	}
	many, err := d.find.measure(ctx, fmt.Sprintf("%d traces by their IDs", len(ids)), ids...)
	if err != nil {
		return err
	}
	d.find.others = []costs{fresh, many}
	t, err := d.find.trace(ctx, first.id)
	if err != nil {
		return err
	}
	d.phase("Find", "trace %s, started by edge for %s", first.id, first.client.name)
	var text strings.Builder
	waterfall(&text, t)
	d.out.Print(text.String())
	return nil
}

// show serves a page with the traces until ctx ends.
func (d *program) show(ctx context.Context, listener net.Listener) error {
	page := startPage(listener, d.spans, d.find, d.edge)
	d.atEnd(page.Shutdown)
	d.phase("Serving", "until Ctrl-C: http://%s lists the traces and can start new ones from the browser", listener.Addr())
	d.phase("", "or start one here, and open the ID in the response's x-trace-id on the page:")
	d.out.Printf("  curl -i -X POST %s/checkout", d.edge.url)
	<-ctx.Done()
	return nil
}
