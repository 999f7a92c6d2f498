package tracing

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// Mistakes that the package documentation warns of. What it advises is in Example_autoprop of
// integration/setup.
func TestAutopropMistakes(t *testing.T) {
	autoprop.RegisterTextMapPropagator("xtraceid", xtraceid.New()) // for as long as the process lives
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
