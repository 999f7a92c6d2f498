package main

// The stores that TRACEFLAKE_STORE can name besides bolt. Copy the line of yours.
import (
	_ "github.com/traceflake/traceflake/randflake/lease/k8sstore" // k8s://…
	_ "github.com/traceflake/traceflake/randflake/lease/pgstore"  // postgres://…
)
