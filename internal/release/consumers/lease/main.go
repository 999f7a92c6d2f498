// A program that uses package lease, with the store in memory.
package main

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func main() {
	codec, err := randflake.NewCodec([]byte("sixteen bytes of"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	keeper, err := lease.Start(ctx, driver.NewMemory(), codec)
	if err != nil {
		panic(err)
	}
	if err := keeper.Ready(ctx); err != nil {
		panic(err)
	}
	id, err := keeper.Next()
	fmt.Println(id, "is leased,", err, keeper.Close(ctx))
}
