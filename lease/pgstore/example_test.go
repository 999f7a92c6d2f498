package pgstore_test

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/pgstore"
)

// A service that has a pool already: the store has connections of its own. Pass it to lease.Start.
func ExampleNew() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://user:password@db.example/fleet")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	store, err := pgstore.New(pool.Config())
	if err != nil {
		panic(err)
	}
	defer store.Close()
}
