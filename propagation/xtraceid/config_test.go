package xtraceid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The characters of a token in RFC 9110, and the names of other formats. A valid name is used as
// given; another one is reported, and the default is used.
func TestHeaderNames(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789" +
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	good := map[string]bool{
		"": false, "X_Trace_Id": false, "x-b3": true,
		"X-Request-Id": true, "X-Trace-ID": true, "Traceparent-2": true,
	}
	for c := range 0x100 {
		good["x"+string([]byte{byte(c)})] = strings.IndexByte(token, byte(c)) >= 0
	}
	for _, name := range contextHeaders {
		good[name] = name == xtraceid.DefaultHeader
	}
	for name, good := range good {
		errs := reportstest.Collect(t)
		option := xtraceid.WithHeader(name)
		xtraceid.New(option)
		fields := xtraceid.New(option).Fields()
		reported := errors.Join(errs()...)
		want := name
		if !good {
			want = xtraceid.DefaultHeader
		}
		text := fmt.Sprint(reported)
		if fields[0] != want || (reported == nil) != good ||
			!good && len(errs()) != 1 || !good && !strings.Contains(text, strconv.Quote(name)) ||
			strings.Contains(text, "\n") {
			t.Errorf("with the name %q, %q is used; reported %v", name, fields[0], reported)
		}
	}
}

// An encoding that does not exist is reported, and the default is used. Nil options change nothing.
func TestEncodings(t *testing.T) {
	want := xtraceid.New().Fields()
	for _, encoding := range []b3.Encoding{b3.B3Unspecified, b3.B3SingleHeader | 1<<7} {
		errs := reportstest.Collect(t)
		got := xtraceid.New(nil, xtraceid.WithB3Encoding(encoding)).Fields()
		if !slices.Equal(got, want) || len(errs()) != 1 {
			t.Errorf("encoding %d: %q, want %q; reported %q", encoding, got, want, errs())
		}
	}
}

// A trace that [xtraceid.Untrusted] refuses or decides about is not lost, and does not spend the
// one report of a trace that is.
func TestLostTracesOfUntrusted(t *testing.T) {
	errs := reportstest.Collect(t)
	equals := func(text string) func(trace.TraceID) bool {
		return func(id trace.TraceID) bool { return id.String() == text }
	}
	p := xtraceid.New()
	q := xtraceid.Untrusted(
		propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, p),
		xtraceid.Trust{Context: equals(traceT), TraceID: equals(traceU)})
	extract := func(id string) context.Context {
		return q.Extract(t.Context(), propagation.MapCarrier{"b3": id + "-" + spanS})
	}
	extract("4bf92f3577b34da6a3ce929d0e0e4736")
	ctx := extract(traceU)
	if got := errs(); len(got) != 0 {
		t.Errorf("reported %q of refused callers", got)
	}
	// The context of a request may be used for what others send, without the edge's rule.
	p.Extract(ctx, propagation.MapCarrier{"b3": traceT + "-" + spanS})
	if got := errs(); len(got) != 1 {
		t.Errorf("reported %q, want one report within a request", got)
	}
	errs = reportstest.Collect(t)
	p = xtraceid.New()
	q = xtraceid.Untrusted(p, xtraceid.Trust{Context: equals(traceT)})
	extract(traceU)
	extract(traceT)
	extract(traceT)
	if got := errs(); len(got) != 1 {
		t.Errorf("reported %q, want one report of an accepted caller", got)
	}
}
