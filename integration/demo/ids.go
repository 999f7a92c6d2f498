package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace"

	_ "github.com/traceflake/traceflake/lease/etcdstore" // etcd://
	_ "github.com/traceflake/traceflake/lease/pgstore"   // postgres://
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// openIDs does what a service does. If the environment has no store, nodes are leased from a file
// in the user's cache folder, which all runs share.
func openIDs(ctx context.Context) (*setup.IDs, error) {
	config, err := setup.Env()
	if _, set := os.LookupEnv(setup.StoreVar); !set && err == nil {
		folder, err := os.UserCacheDir()
		if err == nil {
			folder = filepath.Join(folder, "traceflake")
			err = os.MkdirAll(folder, 0o700)
		}
		if err != nil {
			return nil, fmt.Errorf("no place for leases: %w; %s= needs none", err, setup.StoreVar)
		}
		config.Store = "bolt:" + filepath.Join(folder, "demo.db")
	}
	if err != nil {
		return nil, err
	}
	return config.Open(ctx)
}

// decode describes what the secrets reveal in a trace ID.
func decode(ring *randflake.Keyring, id trace.TraceID) string {
	info := traceid.Inspect(ring, id)
	if !info.Agree {
		return "nothing: its secret is another, or it is random"
	}
	return fmt.Sprintf("node %d, second %s, sequence %d",
		info.Parts.Node, info.Parts.Time.UTC().Format(time.RFC3339), info.Parts.Sequence)
}
