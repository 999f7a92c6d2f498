package pgstore_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/pgstore"
)

// A service that has a pool already: the store has connections of its own. Pass it to lease.Start.
func ExampleNew() {
	pool, err := pgxpool.New(context.Background(), "postgres://user:password@db.example/fleet")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	store, err := pgstore.New(pool.Config(), driver.NodeRange{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
}

// The statement with which an operator makes the table, for roles that may not.
func ExampleStore_Schema() {
	config, err := pgxpool.ParseConfig("postgres://owner@db.example/fleet")
	if err != nil {
		panic(err)
	}
	store, err := pgstore.New(config, driver.NodeRange{BlockSize: 16}, pgstore.WithTable("fleet_a.leases"))
	if err != nil {
		panic(err)
	}
	defer store.Close()
	fmt.Print(store.Schema())
}
