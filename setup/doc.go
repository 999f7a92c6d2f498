// Package setup puts the parts together from the environment.
//
//	ids, err := setup.FromEnv(ctx)
//	…
//	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
//	…
//	provider.Shutdown(ctx)
//	ids.Shutdown(ctx) // gives the lease back
//
// The variables are
//
//	TRACEFLAKE_STORE        where nodes are leased: bolt:PATH, postgres://…, etcd://…
//	TRACEFLAKE_SECRET_FILE  the fleet's secrets, one a line, the first makes IDs
//	TRACEFLAKE_NODES        the share of nodes that this store grants, FIRST+COUNT; default all
//	TRACEFLAKE_BLOCK_SIZE   nodes a block, a power of two; default the store's, 8 in a new one
//	TRACEFLAKE_TTL          how long a lease lasts, such as 10m; default 10m
//	TRACEFLAKE_MAX_BLOCKS   how many blocks this process may hold; default 4
//	TRACEFLAKE_STRICT       1: what waiting cannot cure is an error at the start
//
// Without any of them it is zero configuration: a random secret of this
// process, and no lease. A store of one host (bolt) has a secret of its own;
// the others need the fleet's.
//
// bolt comes with this package. Other stores register themselves when they are
// imported, as drivers of database/sql do:
//
//	import _ "github.com/traceflake/traceflake/randflake/lease/pgstore"
//
// # What is an error
//
// Telemetry does not stop its host: if the store cannot be reached, the process
// starts, makes random IDs behind the clear half and takes up a lease as soon as
// the store grants one. Settings that make no sense are always an error.
//
// With TRACEFLAKE_STRICT=1 the start also waits for the store's first answer, and
// is an error if the store refuses for a reason that waiting does not cure: a
// missing database, role or right, a foreign table or key, another
// block size. A store that is away, or has no free block, is no error then
// either.
//
// # Probes
//
// [IDs.Ready] tells whether IDs are made with a lease now, and
// [IDs.ReadyHandler] tells it to a probe:
//
//	mux.Handle("/ready", ids.ReadyHandler())
//
// Use it as a startup probe, so that no request is served with random IDs. As a
// readiness probe it takes a process that works out of service when its lease
// ends while the store is away.
package setup
