package s3store_test

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/traceflake/traceflake/lease/s3store"
)

// A service that loads AWS's configuration anyway. Pass the store to lease.Start.
func ExampleNew() {
	aws, err := config.LoadDefaultConfig(context.Background(), config.WithRegion("eu-central-1"))
	if err != nil {
		panic(err)
	}
	store, err := s3store.New(aws, "my-bucket", "fleet-a/leases")
	if err != nil {
		panic(err)
	}
	defer store.Close()
}
