package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// IDs is a generator with its lease and its store. It is an [sdktrace.IDGenerator] and safe for
// concurrent use. A zero IDs generates random IDs.
//
// [sdktrace.IDGenerator]: https://pkg.go.dev/go.opentelemetry.io/otel/sdk/trace#IDGenerator
type IDs struct {
	gen    *idgen.Generator // nil in a zero IDs, and if Open failed
	keeper *lease.Keeper    // nil without leases
	store  *store           // nil without leases
	hidden redact.Secrets   // of the settings
}

// FromEnv returns the generator that the environment configures.
//
// It waits for the first lease for at most a second; see the package documentation for the effect
// of TRACEFLAKE_STRICT. IDs generated without a lease are random after the clear half; they are
// counted, and reported to otel.Handle. Errors: [ErrConfig], and those of reading the secret and
// of opening the store. Calls to the store get ctx's values; the end of ctx ends the wait, not the
// generator.
func FromEnv(ctx context.Context) (*IDs, error) {
	c, err := Env()
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

// Open returns a generator with these settings, as [FromEnv] does with those of the environment.
func (c Config) Open(ctx context.Context) (_ *IDs, err error) {
	ids := &IDs{hidden: c.hidden()}
	defer func() { err = ids.hidden.Error(err) }()
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Store == "" {
		ids.gen = idgen.New(idgen.WithMeterProvider(c.MeterProvider))
		return ids, nil
	}
	if err := c.open(ctx, ids); err != nil {
		return nil, errors.Join(err, ids.Shutdown(context.WithoutCancel(ctx)))
	}
	ids.gen = idgen.New(idgen.WithSource(ids.keeper), idgen.WithMeterProvider(c.MeterProvider))
	return ids, nil
}

// generator returns the generator; in a zero IDs, a zero Generator.
func (ids *IDs) generator() *idgen.Generator {
	if ids.gen == nil {
		return &random
	}
	return ids.gen
}

var random idgen.Generator

// NewIDs returns a new trace ID and span ID; see [idgen.Generator.NewIDs].
func (ids *IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return ids.generator().NewIDs(ctx)
}

// NewSpanID returns a new span ID.
func (ids *IDs) NewSpanID(ctx context.Context, id trace.TraceID) trace.SpanID {
	return ids.generator().NewSpanID(ctx, id)
}

// NewTraceIDAt returns a trace ID for an old record; see [idgen.Generator.NewTraceIDAt].
func (ids *IDs) NewTraceIDAt(t time.Time) (trace.TraceID, error) {
	return ids.generator().NewTraceIDAt(t)
}

// OnRestore must be called after this process was restored from a snapshot. When it returns,
// everything that was generated, leased or drawn before is discarded; see
// [idgen.Generator.OnRestore].
func (ids *IDs) OnRestore() {
	if ids.store != nil {
		ids.store.OnRestore() // first: the generator makes the Keeper lease again
	}
	ids.generator().OnRestore()
}

// Fallbacks returns how many IDs were generated without a lease; see [idgen.Generator.Fallbacks].
func (ids *IDs) Fallbacks() int64 { return ids.generator().Fallbacks() }

// open connects to the store and starts the lease. On failure the caller must close ids.
func (c Config) open(ctx context.Context, ids *IDs) (err error) {
	opened, err := stores.Open(c.Store)
	if err != nil {
		return c.explain(err)
	}
	ids.store = &store{Store: opened, config: c}
	if !c.OwnSecret() { // the disk of a lease directory may not be mounted yet
		if ids.store.own, err = c.LoadSecrets(); err != nil {
			return lease.Advise(err)
		}
	}
	opts := []lease.Option{lease.WithMeterProvider(c.MeterProvider),
		lease.WithErrorHandler(func(err error) { otel.Handle(ids.hidden.Error(err)) })}
	if c.TTL != 0 {
		opts = append(opts, lease.WithTTL(c.TTL))
	}
	if ids.keeper, err = lease.Start(ctx, ids.store, ids.store.secrets, opts...); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	return c.wait(ctx, ids.keeper)
}

// hidden returns what may not be shown of the settings: a value without the form that it should
// have may be a secret.
func (c Config) hidden() redact.Secrets {
	return redact.Join(redact.Setting(storeVar, c.Store), redact.Setting(fileVar, c.SecretFile))
}

// wait waits for the first lease for a second, and a strict start for five more if the store has
// not answered: a call of a Keeper takes that long. The Keeper reports failures and keeps trying.
// Only a strict start returns an error, and only if retrying cannot help.
func (c Config) wait(ctx context.Context, k *lease.Keeper) error {
	for _, limit := range []time.Duration{time.Second, 5 * time.Second} {
		ctx, cancel := context.WithTimeout(ctx, limit)
		_ = k.Ready(ctx)
		if cancel(); !c.Strict || k.Failure() != nil {
			break
		}
	}
	if failure := k.Failure(); c.Strict && lease.Permanent(failure) {
		return c.explain(failure)
	}
	return nil
}

// explain adds the setting to an error of the store.
func (c Config) explain(err error) error {
	err = lease.Advise(err)
	if errors.Is(err, lease.ErrInvalidRequest) {
		return invalid(storeVar, redact.Address(c.Store), err)
	}
	return fmt.Errorf("fleet: %s=%s: %w", storeVar, redact.Address(c.Store), err)
}

// Ready returns nil if a lease is held now, and in zero configuration. Before the first lease it
// waits; the error then wraps that of ctx and the store's last error. After the first lease it does
// not wait: the error is the reason why no lease is held. It uses up no ID.
func (ids *IDs) Ready(ctx context.Context) error {
	if ids.keeper == nil {
		return nil
	}
	if err := ids.keeper.Ready(ctx); err != nil {
		return ids.hidden.Error(fmt.Errorf("fleet: not ready: %w", err))
	}
	return nil
}

// ReadyHandler returns a handler for a startup probe, if no request may be served with random IDs.
// It answers at once: 200 if [IDs.Ready] is nil, otherwise 503 and the reason. The reason may
// contain the store's host and user, never a secret or a password; serve it only where operators
// can reach it. As a readiness probe it would take working processes out of service during an
// outage.
func (ids *IDs) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		over, cancel := context.WithCancel(r.Context())
		cancel() // so that Ready does not wait
		if err := ids.Ready(over); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ready\n"))
	})
}

// Keyring returns the keys of the store's histories that the process has learnt of, the present one
// first: with them IDs are verified and decoded; see [Keys]. It is nil in zero configuration, whose
// secret is not available, and as long as the store has been unavailable since the start.
func (ids *IDs) Keyring() *randflake.Keyring {
	if ids.store == nil {
		return nil
	}
	return ids.store.keyring.Load()
}

// Verifier returns a verifier of IDs generated under the keys that [IDs.Keyring] returns at the
// time. For a recent ID that is under none of them the store's description is read, in the
// background and at most once in five seconds: so a history that others have begun is known soon.
// In zero configuration its Verify refuses everything.
func (ids *IDs) Verifier(opts ...traceid.VerifierOption) *traceid.Verifier {
	if ids.store != nil {
		opts = append(opts, traceid.WithUnknown(ids.store.unknown))
	}
	return traceid.NewVerifierFunc(ids.Keyring, opts...)
}

// Shutdown ends the lease, closes the store and ends the metrics of IDs. No program needs it for
// its IDs: a lease ends by itself. IDs generated after it are random if they were leased before.
// Further calls return the same error.
func (ids *IDs) Shutdown(context.Context) error {
	if ids.keeper != nil {
		ids.keeper.Close()
	}
	if ids.store == nil {
		return ids.generator().Close()
	}
	return errors.Join(ids.store.Close(), ids.generator().Close())
}

// Level returns the level at which to log an error that an OpenTelemetry error handler gets: Info
// if something has recovered, Error if an operator has to change something ([lease.Permanent],
// [ErrConfig]), and otherwise Warn.
func Level(err error) slog.Level {
	var recovered reports.Recovered
	switch {
	case errors.As(err, &recovered):
		return slog.LevelInfo
	case lease.Permanent(err), errors.Is(err, ErrConfig):
		return slog.LevelError
	}
	return slog.LevelWarn
}
