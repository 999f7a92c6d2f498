package pgstore_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/pgstore"
	"github.com/traceflake/traceflake/randflake"
)

// A service that has a pool already. All processes of the fleet share the
// secret.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://user:password@db.example/fleet")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	store, err := pgstore.New(pool.Config(), driver.NodeRange{}) // with connections of its own
	if err != nil {
		panic(err)
	}
	defer store.Close()
	codec, err := randflake.NewCodec([]byte("the fleet's code"))
	if err != nil {
		panic(err)
	}
	keeper, err := lease.Start(ctx, store, codec)
	if err != nil {
		panic(err)
	}
	defer keeper.Close(ctx)
	id, err := keeper.Next()
	fmt.Println(id, err)
}

// An operator's program lists who holds which block.
func Example_url() {
	ctx := context.Background()
	store, err := driver.Open(ctx, "postgres://host1,host2/fleet?target_session_attrs=read-write", driver.NodeRange{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	blocks, err := store.List(ctx)
	if err != nil {
		panic(err)
	}
	for _, b := range blocks {
		fmt.Println(b.Node, b.Owner, b.GrantedUntil)
	}
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
