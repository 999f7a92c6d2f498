// Package otelc gives traceflake's IDs to a service that is instrumented by otelc, OpenTelemetry's
// compile-time instrumentation, and contains no traceflake code. The service's
// otel.instrumentation.go imports it:
//
//	_ "github.com/traceflake/traceflake/contrib/otelc"
//
// Every TracerProvider without WithIDGenerator then uses a generator that the environment
// configures, as [fleet.FromEnv] describes. All providers share it, for as long as the process
// runs. Only file: stores are included; the service imports any other. The propagator [xtraceid] is
// registered with autoprop, so OTEL_PROPAGATORS can name it.
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

// The variable that in_sdk.go adds to the SDK, which cannot import this package. A function without
// a body would not link if the rules did not match.
//
//go:linkname generatorHook go.opentelemetry.io/otel/sdk/trace.traceflakeGenerator
var generatorHook func() trace.IDGenerator

func init() {
	err := errors.Join(checkSDK(), registerPropagator())
	if err != nil {
		otel.Handle(err)
	}
	generatorHook = sync.OnceValue(open)
}

// checkSDK returns an error unless new providers call the hook.
func checkSDK() error {
	asked := false
	generatorHook = func() trace.IDGenerator { asked = true; return new(fleet.IDs) }
	provider := trace.NewTracerProvider(trace.WithResource(resource.Empty()))
	if err := provider.Shutdown(context.Background()); err != nil || asked {
		return err
	}
	return unchanged("defaultIDGenerator in the SDK", "trace IDs are random")
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

// open returns the process's generator.
func open() trace.IDGenerator {
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
