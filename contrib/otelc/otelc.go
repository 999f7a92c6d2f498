// Package otelc gives traceflake's IDs to a service that is instrumented by otelc, OpenTelemetry's
// compile-time instrumentation, and contains no traceflake code. The service's
// otel.instrumentation.go imports it:
//
//	_ "github.com/traceflake/traceflake/contrib/otelc"
//
// Every TracerProvider without WithIDGenerator then uses a generator that the environment
// configures, as [fleet.FromEnv] describes. All providers share it; the Shutdown of the last
// provider gives the lease back. Only file: stores are included; the service imports any other. The
// propagator [xtraceid] is registered with autoprop, so OTEL_PROPAGATORS can name it.
//
// An invalid setting is reported to [otel.Handle], and IDs are those of zero configuration; with
// TRACEFLAKE_STRICT=1 the process exits. If a rule of otelc.yaml did not match, an error at the
// start reports which function is unchanged.
package otelc

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	_ "unsafe" // for linkname

	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// The variables that in_sdk.go adds to the SDK, which cannot import this package. Functions without
// a body would not link if the rules did not match.
var (
	//go:linkname generatorHook go.opentelemetry.io/otel/sdk/trace.traceflakeGenerator
	generatorHook func() trace.IDGenerator
	//go:linkname shutdownHook go.opentelemetry.io/otel/sdk/trace.traceflakeShutdown
	shutdownHook func(context.Context, trace.IDGenerator)
)

func init() {
	err := errors.Join(checkSDK(), registerPropagator())
	if err != nil {
		otel.Handle(err)
	}
	generatorHook, shutdownHook = acquire, release
}

// checkSDK returns an error unless new providers call both hooks.
func checkSDK() error {
	var asked, closed bool
	generatorHook = func() trace.IDGenerator { asked = true; return new(generator) }
	shutdownHook = func(context.Context, trace.IDGenerator) { closed = true }
	_ = trace.NewTracerProvider(trace.WithResource(resource.Empty())).Shutdown(context.Background())
	switch {
	case !asked:
		return unchanged("defaultIDGenerator in the SDK", "trace IDs are random")
	case !closed:
		return unchanged("TracerProvider.Shutdown in the SDK", "leases are not returned")
	}
	return nil
}

func unchanged(what, effect string) error {
	return fmt.Errorf("traceflake/otelc: %s is unchanged, so %s: build with "+
		"`otelc setup && otelc go build`; if you did, this release does not support "+
		"the version in go.mod", what, effect)
}

// registerPropagator returns an error unless the service may register the name again.
func registerPropagator() (err error) {
	const name = "xtraceid"
	if _, err := autoprop.TextMapPropagator(name); err == nil {
		return nil // an init of the service was first
	}
	autoprop.RegisterTextMapPropagator(name, xtraceid.New())
	defer func() {
		if recover() != nil {
			err = unchanged("RegisterTextMapPropagator in autoprop",
				"registering xtraceid again panics")
		}
	}()
	autoprop.RegisterTextMapPropagator(name, xtraceid.New())
	return nil
}

// generator is the generator of one provider.
type generator struct {
	*fleet.IDs
	released sync.Once
}

// shared holds what the process's generators share: one lease.
var shared struct {
	sync.Mutex
	ids       *fleet.IDs
	providers int // until their Shutdown
}

func acquire() trace.IDGenerator {
	shared.Lock()
	defer shared.Unlock()
	if shared.providers == 0 {
		shared.ids = open()
	}
	shared.providers++
	return &generator{IDs: shared.ids}
}

func open() *fleet.IDs {
	settings, err := fleet.Env()
	if err == nil {
		var ids *fleet.IDs
		if ids, err = settings.Open(context.Background()); err == nil {
			return ids
		}
	}
	if settings.Strict {
		log.Fatal("traceflake/otelc: ", err) // no caller could handle it
	}
	otel.Handle(fmt.Errorf("traceflake/otelc: IDs are generated without a lease: %w", err))
	ids, _ := fleet.Config{}.Open(context.Background()) // without settings there is no error
	return ids
}

func release(ctx context.Context, of trace.IDGenerator) {
	g, ok := of.(*generator)
	if !ok {
		return // from WithIDGenerator
	}
	g.released.Do(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.providers--; shared.providers > 0 {
			return
		}
		if err := shared.ids.Shutdown(ctx); err != nil {
			otel.Handle(fmt.Errorf("traceflake/otelc: %w", err))
		}
	})
}
