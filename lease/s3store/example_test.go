package s3store_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/randflake"
)

// A service that loads AWS's configuration anyway. All processes of the fleet
// share the secret.
func Example() {
	ctx := context.Background()
	aws, err := config.LoadDefaultConfig(ctx, config.WithRegion("eu-central-1"))
	if err != nil {
		panic(err)
	}
	store, err := s3store.New(aws, "my-bucket", driver.NodeRange{}, s3store.WithPrefix("fleet-a/leases/"))
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
	store, err := driver.Open(ctx, "s3://my-bucket/fleet-a/leases?region=eu-central-1", driver.NodeRange{})
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
