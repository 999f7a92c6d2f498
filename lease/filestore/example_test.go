package filestore_test

import (
	"context"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/stores"
)

// The processes of one host share a directory, and through its secret the space of IDs. Package
// fleet does this for TRACEFLAKE_STORE=file:/var/lib/app/leases.
func ExampleNew() {
	const dir = "/var/lib/app/leases"
	ctx := context.Background()
	store, err := filestore.New(dir)
	if err != nil {
		panic(err)
	}
	defer store.Close()
	secrets, err := filestore.Secret(ctx, dir)
	if err == nil {
		err = stores.Ensure(ctx, store, secrets.Codec())
	}
	if err != nil {
		panic(err)
	}
	keeper, err := lease.Start(ctx, store, lease.FixedSecrets(secrets))
	if err != nil {
		panic(err)
	}
	defer keeper.Close()
}
