package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func clickhouseCreateCommand(s *spansServer) *cobra.Command {
	schema := &s.schema
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create functions and tables",
		Long: `create creates the functions on trace IDs, the spans table, and the exporter's
lookup table with the view that fills it. It can be run again at any time, with another
--ttl too. A table with another schema is refused: see adopt.

With --overlay the exporter's table stays and gets one small index on trace ID
ranges; with --logs the exporter's logs table gets one, too. --materialize also
builds the index for the rows that are already stored.

--dry-run without an address prints the SQL for a new table; with one it first
looks at the server.`,
		Example: `  traceflake clickhouse create --dry-run
  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel --ttl 30d
  traceflake clickhouse create --overlay --logs otel_logs --materialize`,
	}
	durationFlag(cmd, &schema.TTL, "ttl", 0, "how long spans are kept, as in 30d (default "+
		"forever, or as in the table that exists)")
	cmd.Flags().BoolVar(&schema.Overlay, "overlay", false, "keep the exporter's table")
	cmd.Flags().StringVar(&schema.LogsTable, "logs", "", "also add the index to this logs table")
	cmd.Flags().BoolVar(&schema.Materialize, "materialize", false,
		"with --overlay or --logs, build the index for stored rows and wait for it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if schema.Materialize && !schema.Overlay && schema.LogsTable == "" {
			return errors.New("--materialize needs --overlay or --logs: other tables are created " +
				"with the index")
		}
		if s.dryRun && s.address() == "" {
			plan, err := schema.Plan(cmd.Context(), nil)
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), plan.Script())
			}
			return err
		}
		return s.change(cmd, schema.Plan, nil)
	}
	return cmd
}
