// Package setup builds a generator from the environment.
//
//	ids, err := setup.FromEnv(ctx)
//	…
//	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
//	…
//	provider.Shutdown(context.WithoutCancel(ctx)) // ctx may have ended
//	ids.Shutdown(ctx)                             // returns the lease even so
//
// The variables are
//
//	TRACEFLAKE_STORE        where nodes are leased: file:DIR, postgres://…, etcd://…,
//	                        k8s://…, s3://…
//	TRACEFLAKE_SECRET_FILE  the store's secrets, one per line; new IDs use the first
//	TRACEFLAKE_TTL          how long a lease lasts, such as 10m; default 10m
//	TRACEFLAKE_STRICT       1: the start fails if retrying cannot help
//
// If none of them is set, the process draws a random secret for itself and needs no lease: zero
// configuration.
//
// An operator creates a store once, with `traceflake lease create`, which writes the secret file. A
// process never creates one, except for a directory, which has a secret of its own. file is part of
// this package; other stores register themselves when they are imported:
//
//	import _ "github.com/traceflake/traceflake/lease/pgstore"
//
// # What is an error
//
// Telemetry does not stop its host: if the store cannot be reached, the process starts, generates
// IDs that are random after the clear half, and uses a lease as soon as the store grants one.
// Invalid settings are always an error.
//
// With TRACEFLAKE_STRICT=1 the start also waits for the store's first answer. It fails if retrying
// cannot help ([lease.Permanent]): there is no store, it belongs to another secret, or a database,
// a role or a right is missing. An unreachable store, or one without a free block, is still not an
// error.
//
// Use [IDs.ReadyHandler] for a startup probe, so that no request is served with random IDs. A
// readiness probe would take a working process out of service if its lease ends while the store is
// unreachable.
package setup
