package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// client is a kind of client: it sends B3 with trace IDs of 64 or 128 bits, or no headers.
type client struct {
	name string
	bits int
}

var clients = []client{
	{"a client without headers", 0},
	{"an old app (64-bit B3 and x-trace-id)", 64},
	{"a new app (128-bit B3 and x-trace-id)", 128},
}

// request is one request to shop.
type request struct {
	client client
	id     trace.TraceID
	parent trace.SpanID // the expected parent of shop's first span; zero for none
}

// spansOfRequest are a server span and a client span of shop, and a server span of orders.
const spansOfRequest = 3

// send sends requests from every kind of client, 16 at a time.
func send(ctx context.Context, url string, n int) ([]request, error) {
	app := idgen.New() // the apps' own
	sent := make([]request, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range sent {
		sent[i].client = clients[i%len(clients)]
		group.Go(func() error { return sent[i].send(ctx, url, app) })
	}
	return sent, group.Wait()
}

// send takes the trace ID from the response. It must be the ID that was sent or, for a client
// without headers, one generated during the request.
func (r *request) send(ctx context.Context, url string, app *idgen.Generator) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	var want trace.TraceID
	if r.client.bits > 0 {
		want, r.parent = app.NewIDs(ctx)
		q.Header.Set(xtraceid.DefaultHeader, want.String())
		q.Header.Set("X-B3-TraceId", want.String()[32-r.client.bits/4:])
		q.Header.Set("X-B3-SpanId", r.parent.String())
		q.Header.Set("X-B3-Sampled", "1")
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	r.id, err = trace.TraceIDFromHex(response.Header.Get(xtraceid.DefaultHeader))
	if err != nil || want.IsValid() && r.id != want ||
		!traceid.Plausible(r.id, time.Now(), time.Minute, 5*time.Second) {
		return fmt.Errorf("the response's %s is %s, want %s, or a new one if that is zero: %w",
			xtraceid.DefaultHeader, r.id, want, err)
	}
	return nil
}

// check compares the sent requests with the spans in ClickHouse.
func check(ctx context.Context, engine *servers.Engine, sent []request) error {
	rows, err := engine.Query(ctx,
		`SELECT TraceId, uniqExact(SpanId), argMin(ParentSpanId, (ServiceName != 'shop', Timestamp))
		FROM otel_traces WHERE ServiceName IN ('shop', 'orders') GROUP BY TraceId`)
	if err != nil {
		return err
	}
	stored := make(map[string]string, len(rows.Rows))
	for _, row := range rows.Rows {
		stored[row[0]] = fmt.Sprintf("%s spans under %q", row[1], row[2])
	}
	for _, r := range sent {
		var parent string
		if r.parent.IsValid() {
			parent = r.parent.String()
		}
		if got, want := stored[r.id.String()], fmt.Sprintf("%d spans under %q", spansOfRequest,
			parent); got != want {
			return fmt.Errorf("of trace %s ClickHouse has stored %q, want %q", r.id, got, want)
		}
	}
	return nil
}
