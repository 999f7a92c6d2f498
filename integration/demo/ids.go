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

const storeVariable = "TRACEFLAKE_STORE"

// patience is how long to wait for the first lease.
const patience = 2 * time.Second

// openIDs does what a service does. If the environment has no store, nodes are leased from a file
// in the user's cache folder, which all runs share.
func openIDs(ctx context.Context) (*setup.IDs, error) {
	if _, set := os.LookupEnv(storeVariable); !set {
		folder, err := os.UserCacheDir()
		if err == nil {
			folder = filepath.Join(folder, "traceflake")
			err = os.MkdirAll(folder, 0o700)
		}
		if err != nil {
			return nil, fmt.Errorf("no place for leases: %w; %s= needs none", err, storeVariable)
		}
		if err := os.Setenv(storeVariable, "bolt:"+filepath.Join(folder, "demo.db")); err != nil {
			return nil, err
		}
		defer func() { _ = os.Unsetenv(storeVariable) }()
	}
	ids, err := setup.FromEnv(ctx)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = ids.Ready(waiting) // without a lease, IDs are random for now
	return ids, nil
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
