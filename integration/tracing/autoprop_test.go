package tracing

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The registration of the package documentation. autoprop's registry lasts as long as the process.
func init() {
	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
}

func TestAutoprop(t *testing.T) {
	t.Setenv("OTEL_PROPAGATORS", "xtraceid")
	p := autoprop.NewTextMapPropagator()
	if got, want := p.Fields(), xtraceid.New().Fields(); !slices.Equal(got, want) {
		t.Fatalf("fields %q, want %q", got, want)
	}
	s := startService(t, http.HandlerFunc(ok), serviceConfig{propagator: p})
	get(t, s.Client(), s.URL, "x-trace-id", traceT, "X-B3-TraceId", low64, "X-B3-SpanId", spanS, "X-B3-Sampled", "1")
	span := s.ended(t, 1)[0]
	if got := span.SpanContext().TraceID().String() + "-" + span.Parent().SpanID().String(); got != traceT+"-"+spanS {
		t.Errorf("got %s, want %s-%s", got, traceT, spanS)
	}
}

// Mistakes that the package documentation warns of.
func TestAutopropMistakes(t *testing.T) {
	t.Run("registered twice", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New())
	})
	t.Run("space in the list", func(t *testing.T) {
		previous := otel.GetErrorHandler()
		defer otel.SetErrorHandler(previous)
		var reported error
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = errors.Join(reported, err) }))
		t.Setenv("OTEL_PROPAGATORS", "baggage, xtraceid")
		if p := autoprop.NewTextMapPropagator(); slices.Contains(p.Fields(), "x-trace-id") {
			t.Error("the name with a space is accepted: remove the warning from the package documentation")
		}
		if reported == nil || !strings.Contains(reported.Error(), "unknown propagator") {
			t.Errorf("reported %v, want an unknown propagator", reported)
		}
	})
}
