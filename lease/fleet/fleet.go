package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/lease"
	_ "github.com/traceflake/traceflake/lease/filestore" // registers file:DIR
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// IDs is a generator with its lease and its store. It is an [sdktrace.IDGenerator] and safe for
// concurrent use. A zero IDs generates random IDs.
//
// [sdktrace.IDGenerator]: https://pkg.go.dev/go.opentelemetry.io/otel/sdk/trace#IDGenerator
type IDs struct {
	gen     *idgen.Generator                  // nil in a zero IDs, and if Open failed
	keyring atomic.Pointer[randflake.Keyring] // of the secret file, or the store's own
	keeper  *lease.Keeper                     // nil without leases
	store   stores.Store                      // nil without leases

	shutdown    sync.Once
	shutdownErr error
}

// FromEnv returns the generator that the environment configures. Call [IDs.Shutdown] after the
// TracerProvider's Shutdown.
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
func (c Config) Open(ctx context.Context) (*IDs, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Store == "" {
		return &IDs{gen: idgen.New(idgen.WithMeterProvider(c.MeterProvider))}, nil
	}
	ids := new(IDs)
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
// [idgen.Generator.OnRestore]. From then on a lease directory is refused, because it may have been
// copied, too.
func (ids *IDs) OnRestore() {
	if ids.store != nil {
		ids.store.OnRestore()
	}
	ids.generator().OnRestore()
}

// Fallbacks returns how many IDs were generated without a lease; see [idgen.Generator.Fallbacks].
func (ids *IDs) Fallbacks() int64 { return ids.generator().Fallbacks() }

// open connects to the store and starts the lease. On failure the caller must close ids.
func (c Config) open(ctx context.Context, ids *IDs) (err error) {
	if ids.store, err = stores.Open(c.Store); err != nil {
		ids.store = nil
		return c.explain(err)
	}
	secrets, err := c.secrets(ids)
	if err != nil {
		return err
	}
	// The Keeper reads them again when the store has another secret.
	secret := func(ctx context.Context) (*randflake.Codec, error) {
		k, err := secrets(ctx)
		if err == nil {
			ids.keyring.Store(k)
		}
		return k.Codec(), err
	}
	opts := []lease.Option{lease.WithMeterProvider(c.MeterProvider)}
	if c.TTL != 0 {
		opts = append(opts, lease.WithTTL(c.TTL))
	}
	if ids.keeper, err = lease.Start(ctx, ids.store, secret, opts...); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	return c.wait(ctx, ids.keeper)
}

// secrets returns a function that reads the secrets with which the store's leases are used. It
// reads the secret file once, to return its errors. A store that keeps its own secrets is not read:
// a disk that is full, read-only, busy or not mounted yet is an unavailable store.
func (c Config) secrets(ids *IDs) (func(context.Context) (*randflake.Keyring, error), error) {
	s := ids.store
	switch {
	case s.KeepsSecret() && c.SecretFile != "":
		return nil, invalid(secretVar, c.SecretFile,
			fmt.Errorf("%s=%s has a secret of its own; unset this variable, or use a store that "+
				"several hosts can share", storeVar, redact.Address(c.Store)))
	case s.KeepsSecret():
		return func(ctx context.Context) (*randflake.Keyring, error) {
			return stores.EnsureSecrets(ctx, s)
		}, nil
	case c.SecretFile == "":
		return nil, fmt.Errorf("%w: %s=%s: set %s to the secret file that `traceflake lease "+
			"create` wrote for this store",
			ErrConfig, storeVar, redact.Address(c.Store), secretVar)
	}
	k, err := LoadKeyring(c.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", secretVar, err)
	}
	ids.keyring.Store(k)
	return func(context.Context) (*randflake.Keyring, error) {
		return readKeyring(c.SecretFile)
	}, nil
}

// wait waits for the first lease for a second, and a strict start for longer if the store has not
// answered. The Keeper reports failures and keeps trying. Only a strict start returns an error, and
// only if retrying cannot help.
func (c Config) wait(ctx context.Context, k *lease.Keeper) error {
	first, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _ = k.Ready(first); !c.Strict {
		return nil
	}
	if k.Failure() == nil { // there is a lease, or no answer yet: a call of a Keeper takes 5 s
		answer, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_ = k.Ready(answer)
	}
	if failure := k.Failure(); lease.Permanent(failure) {
		return c.explain(failure)
	}
	return nil
}

// over is a context that has ended: with it, Ready does not wait.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// explain adds the setting to an error of the store.
func (c Config) explain(err error) error {
	err = lease.Advise(err)
	switch {
	case errors.Is(err, lease.ErrInvalidRequest):
		return invalid(storeVar, redact.Address(c.Store), err)
	case errors.Is(err, lease.ErrWrongSecret):
		return invalid(secretVar, c.SecretFile,
			fmt.Errorf("%w (%s=%s)", err, storeVar, redact.Address(c.Store)))
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
		return fmt.Errorf("fleet: not ready: %w", err)
	}
	return nil
}

// ReadyHandler returns a handler for a startup probe, if no request may be served with random IDs.
// It answers at once: 200 if [IDs.Ready] is nil, otherwise 503 and the reason. The reason may
// contain the store's host and user, never a secret or a password; serve it only where operators
// can reach it. As a readiness probe it would take working processes out of service during an
// outage.
func (ids *IDs) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := ids.Ready(over); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ready\n"))
	})
}

// Keyring returns the secrets with which IDs are generated and decoded: those of the file, or the
// store's own. It is nil in zero configuration, whose secret is not available, and as long as a
// store with its own secret has been unavailable since the start.
func (ids *IDs) Keyring() *randflake.Keyring {
	return ids.keyring.Load()
}

// Verifier returns a verifier of IDs generated under the secrets that [IDs.Keyring] returns at the
// time. In zero configuration its Verify refuses everything.
func (ids *IDs) Verifier(opts ...traceid.VerifierOption) *traceid.Verifier {
	return traceid.NewVerifierFunc(ids.Keyring, opts...)
}

// Shutdown gives the lease back, closes the store and ends the metrics of IDs. Call it after
// Shutdown of the TracerProvider, which ends spans, and of the MeterProvider, which exports the
// last counts. IDs generated after it are random if they were leased before. Further calls return
// the same error.
//
// The store has at least two seconds to take the lease back, even if ctx has already ended, as the
// context of [signal.NotifyContext] has at the end of a program, or if an exporter has used up its
// time.
//
// [signal.NotifyContext]: https://pkg.go.dev/os/signal#NotifyContext
func (ids *IDs) Shutdown(ctx context.Context) error {
	ids.shutdown.Do(func() {
		const least = 2 * time.Second // for the store
		giveBack := ctx
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) < least {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), least)
			defer cancel()
			giveBack = late
		}
		var errs []error
		if ids.keeper != nil {
			errs = append(errs, ids.keeper.Close(giveBack))
		}
		if ids.store != nil {
			errs = append(errs, ids.store.Close())
		}
		if ids.gen != nil {
			errs = append(errs, ids.gen.Close())
		}
		ids.shutdownErr = errors.Join(errs...)
	})
	return ids.shutdownErr
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
