package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// kind is a sort of client.
type kind int

const (
	oldApp kind = iota // knows 64-bit B3; x-trace-id was added to it
	newApp             // 128-bit B3 and x-trace-id
	bare               // sends no trace headers
	kinds
)

func (k kind) String() string {
	return [...]string{"an old app (64-bit B3 and x-trace-id)", "a new app (128-bit B3 and x-trace-id)", "a client without headers"}[k]
}

// request is one call of edge and what ClickHouse must store of it.
type request struct {
	kind    kind
	route   route
	sampled bool
	parent  trace.SpanID // the wanted parent of edge's span; zero for none
}

// plan is a list of requests, every kind of client with every route.
type plan []request

// concurrency is the number of requests in flight.
const concurrency = 16

func newPlan(n int) plan {
	p := make(plan, n)
	for i := range p {
		p[i] = request{kind: kind(i % int(kinds)), route: routes[i/int(kinds)%len(routes)], sampled: true}
		// Some requests of new apps ask for no sampling.
		if p[i].kind == newApp && i%30 == 28 {
			p[i].sampled = false
		}
	}
	return p
}

// String describes the plan: how many requests each kind of client sends.
func (p plan) String() string {
	var count, unsampled [kinds]int
	for _, r := range p {
		count[r.kind]++
		if !r.sampled {
			unsampled[r.kind]++
		}
	}
	text := fmt.Sprintf("%d to edge, %d at a time", len(p), concurrency)
	for k := range kinds {
		text += fmt.Sprintf("\n%15d from %s", count[k], k)
		if n := unsampled[k]; n > 0 {
			text += fmt.Sprintf(", %d of them unsampled", n)
		}
	}
	return text
}

// send sends all requests and returns them by their trace IDs.
func (p plan) send(ctx context.Context, url string) (map[trace.TraceID]request, error) {
	var (
		app    = idgen.New() // the apps' own, apart from the services'
		client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
		mu     sync.Mutex
		sent   = make(map[trace.TraceID]request, len(p))
	)
	defer client.CloseIdleConnections()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, r := range p {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			id, err := r.send(groupCtx, client, url, app)
			if err != nil {
				return fmt.Errorf("request from %s: %w", r.kind, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if _, twice := sent[id]; twice {
				return fmt.Errorf("two requests have the trace ID %s", id)
			}
			sent[id] = r
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		err = errors.New("interrupted before all requests were sent")
	}
	return sent, err
}

// send returns the trace ID of the response. It must be the ID that was sent or, for a client
// without headers, one made during the request.
func (r *request) send(ctx context.Context, client *http.Client, url string, app *idgen.Generator) (trace.TraceID, error) {
	q, err := http.NewRequestWithContext(ctx, r.route.Method, url+r.route.Path, nil)
	if err != nil {
		return trace.TraceID{}, err
	}
	var want trace.TraceID
	if r.kind != bare {
		want, r.parent = app.NewIDs(ctx)
		b3 := want.String()
		if r.kind == oldApp {
			b3 = b3[16:]
		}
		q.Header.Set(xtraceid.DefaultHeader, want.String())
		q.Header.Set("X-B3-TraceId", b3)
		q.Header.Set("X-B3-SpanId", r.parent.String())
		q.Header.Set("X-B3-Sampled", "1")
		if !r.sampled {
			q.Header.Set("X-B3-Sampled", "0")
		}
	}
	response, err := client.Do(q)
	if err != nil {
		return trace.TraceID{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return trace.TraceID{}, err
	}
	if response.StatusCode != http.StatusOK {
		return trace.TraceID{}, fmt.Errorf("%s %s: %s", r.route.Method, r.route.Path, response.Status)
	}
	got, err := trace.TraceIDFromHex(response.Header.Get(xtraceid.DefaultHeader))
	switch {
	case err != nil:
		return got, fmt.Errorf("the answer's %s: %w", xtraceid.DefaultHeader, err)
	case r.kind != bare && got != want:
		return got, fmt.Errorf("the response's %s is %s, want %s", xtraceid.DefaultHeader, got, want)
	case r.kind == bare && !traceid.Plausible(got, time.Now(), time.Minute, 5*time.Second):
		return got, fmt.Errorf("the response's %s is %s, which was not made during the request", xtraceid.DefaultHeader, got)
	}
	return got, nil
}
