// Package setup puts the parts together as the environment says.
//
//	ids, shutdown, err := setup.FromEnv(ctx)
//	…
//	defer shutdown(context.Background())
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
//
// The variables are
//
//	TRACEFLAKE_STORE        where nodes are leased: bolt:PATH, postgres://…, etcd://…
//	TRACEFLAKE_SECRET_FILE  the fleet's secrets, one a line, the first makes IDs
//	TRACEFLAKE_NODES        the share of nodes that this store grants, FIRST+COUNT; default all
//	TRACEFLAKE_BLOCK_SIZE   nodes a block, a power of two; default the store's, 8 in a new one
//	TRACEFLAKE_TTL          how long a lease lasts, as in 10m; default 10m
//	TRACEFLAKE_MAX_BLOCKS   how many blocks this process may hold; default 4
//
// Without any of them it is zero configuration: a random secret of this
// process, and no lease. A store of one host (bolt) has a secret of its own;
// the others need the fleet's.
//
// bolt comes with this package. Other stores register themselves when they are
// imported, as drivers of database/sql do:
//
//	import _ "github.com/traceflake/traceflake/randflake/lease/pgstore"
package setup
