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
//	                        k8s://…, s3://…; without it each process generates a secret
//	                        for itself and needs no lease: zero configuration
//	TRACEFLAKE_SECRET_FILE  the store's secrets, one per line; new IDs use the first
//	TRACEFLAKE_TTL          how long a lease lasts, such as 10m; default 10m
//	TRACEFLAKE_STRICT       1: the start fails if retrying cannot help
//
// An operator creates a store once, with `traceflake lease create`, which writes the secret file;
// a directory creates itself. This package includes the file store; import any other:
//
//	import _ "github.com/traceflake/traceflake/lease/pgstore"
//
// # What is an error
//
// Invalid settings are always an error, an unavailable or full store never: the process starts,
// generates IDs that are random after the clear half, and uses a lease as soon as the store grants
// one. With TRACEFLAKE_STRICT=1 the start waits for the store's first response, and fails if
// retrying cannot help ([lease.Permanent]): the store does not exist or belongs to another secret,
// or a database, a role or a right is missing.
//
// Use [IDs.ReadyHandler] for a startup probe if no request may be served with random IDs, but not
// for a readiness probe, which would take working processes out of service during an outage.
package setup
