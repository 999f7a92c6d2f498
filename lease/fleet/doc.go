// Package fleet builds the generator of a fleet's process from the environment.
//
//	import _ "github.com/traceflake/traceflake/lease/pgstore" // postgres://; file: needs none
//
//	ids, err := fleet.FromEnv(ctx)
//	…
//	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
//	…
//	provider.Shutdown(context.WithoutCancel(ctx)) // ctx may have ended; ids need no shutdown
//
// docs/configuration.md lists the variables. Without TRACEFLAKE_STORE each process generates a
// secret for itself and needs no lease: zero configuration.
//
// Invalid settings are always an error, an unavailable or full store never: the process starts,
// generates IDs that are random after the clear half, and uses a lease as soon as the store grants
// one. With TRACEFLAKE_STRICT=1 the start waits for the store's first response, and fails if
// retrying cannot help ([lease.Permanent]): the store does not exist or has a history under another
// secret, or a database, a role or a right is missing.
package fleet
