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
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// client is a sort of client: it knows B3 with trace IDs of so many bits, or no headers.
type client struct {
	name string
	bits int
}

var clients = []client{
	{"a client without headers", 0},
	{"an old app (64-bit B3 and x-trace-id)", 64},
	{"a new app (128-bit B3 and x-trace-id)", 128},
}

// request is one call of edge.
type request struct {
	client client
	route  route
	id     trace.TraceID
	parent trace.SpanID // the wanted parent of edge's span; zero for none
}

// concurrency is the number of requests in flight.
const concurrency = 16

// send sends n requests, from every kind of client to every route, and returns them.
func send(ctx context.Context, url string, n int) ([]request, error) {
	app := idgen.New() // the apps' own, apart from the services'
	caller := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
	defer caller.CloseIdleConnections()
	sent := make([]request, n)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range sent {
		r := &sent[i]
		r.client, r.route = clients[i%len(clients)], routes[i/len(clients)%len(routes)]
		group.Go(func() error {
			if err := r.send(groupCtx, caller, url, app); err != nil {
				return fmt.Errorf("request from %s: %w", r.client.name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		err = errors.New("interrupted before all requests were sent")
	}
	return sent, err
}

// send sets the trace ID to that of the response. It must be the ID that was sent or, for a client
// without headers, one generated during the request.
func (r *request) send(ctx context.Context, caller *http.Client, url string, app *idgen.Generator) error {
	q, err := http.NewRequestWithContext(ctx, r.route.Method, url+r.route.Path, nil)
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
	response, err := caller.Do(q)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", r.route.Method, r.route.Path, response.Status)
	}
	r.id, err = trace.TraceIDFromHex(response.Header.Get(xtraceid.DefaultHeader))
	switch {
	case err != nil:
		return fmt.Errorf("the response's %s: %w", xtraceid.DefaultHeader, err)
	case want.IsValid() && r.id != want:
		return fmt.Errorf("the response's %s is %s, want %s", xtraceid.DefaultHeader, r.id, want)
	case !traceid.Plausible(r.id, time.Now(), time.Minute, 5*time.Second):
		return fmt.Errorf("the response's %s is %s, which was not generated during the request", xtraceid.DefaultHeader, r.id)
	}
	return nil
}

// summary is what ClickHouse stores of one trace.
type summary struct {
	TraceID  string `ch:"TraceId"`
	Spans    uint64
	Distinct uint64 // span IDs
	Services uint64
	Parent   string // of edge's first span
}

// check compares what was sent with what is stored, trace by trace.
func check(sent []request, stored []summary) (verdict string, err error) {
	missing := make(map[string]summary, len(sent)) // by trace ID
	for _, r := range sent {
		want := summary{TraceID: r.id.String(), Spans: r.route.spans, Distinct: r.route.spans, Services: 2}
		if r.parent.IsValid() {
			want.Parent = r.parent.String()
		}
		missing[want.TraceID] = want
	}
	spans := uint64(0)
	for _, s := range stored {
		want, ok := missing[s.TraceID]
		switch {
		case !ok:
			return "", fmt.Errorf("trace %q is stored but was not sent", s.TraceID)
		case s != want:
			return "", fmt.Errorf("trace %s: stored %+v, want %+v", s.TraceID, s, want)
		}
		delete(missing, s.TraceID)
		spans += s.Spans
	}
	for id := range missing {
		return "", fmt.Errorf("%d traces are not stored, such as %s", len(missing), id)
	}
	return fmt.Sprintf("all %d traces are stored under the expected IDs, with all of their %d spans", len(sent), spans), nil
}
