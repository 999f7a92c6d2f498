// Command traceflake decodes, generates and verifies trace and span IDs, and manages lease stores
// and their secrets.
//
//	go install github.com/traceflake/traceflake/cmd/traceflake@latest
//
// Exit codes: 0, success; 1, an ID was not verified or not found, some input was not understood, or
// doctor found a problem; 2, wrong usage, an unreadable secret or an unreachable store.
package main

import (
	"github.com/traceflake/traceflake/cmd/traceflake/cli"

	_ "github.com/traceflake/traceflake/lease/etcdstore" // etcd://, etcds://
	_ "github.com/traceflake/traceflake/lease/k8sstore"  // k8s://
	_ "github.com/traceflake/traceflake/lease/pgstore"   // postgres://
	_ "github.com/traceflake/traceflake/lease/s3store"   // s3://
)

func main() { cli.Main() }
