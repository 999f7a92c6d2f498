package cli_test

import (
	"github.com/traceflake/traceflake/cmd/traceflake/cli"

	_ "github.com/traceflake/traceflake/lease/etcdstore"
	_ "github.com/traceflake/traceflake/lease/k8sstore"
	_ "github.com/traceflake/traceflake/lease/pgstore"
	_ "github.com/traceflake/traceflake/lease/s3store"
)

// The main function of a command with the stores that the program imports.
func Example() {
	cli.Main()
}
