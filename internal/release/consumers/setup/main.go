// A program that takes its generator from the environment by package setup.
package main

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/setup"
)

func main() {
	ctx := context.Background()
	ids, err := setup.FromEnv(ctx)
	if err != nil {
		panic(err)
	}
	id, span := ids.NewIDs(ctx)
	fmt.Println(id, span, ids.Shutdown(ctx))
}
