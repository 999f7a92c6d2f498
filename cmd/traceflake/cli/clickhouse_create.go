package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func clickhouseCreateCommand(s *spansServer) *cobra.Command {
	schema := &s.schema
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create functions and tables",
		Long: `create creates the functions on trace IDs, the spans table, and the exporter's
lookup table with the view that fills it. It can be run again at any time, and then adds
what a table of an earlier version lacks. A table with another schema is refused: see
adopt.

A new table also stores six narrow columns by service, for charts. With
--projection none it does not; with --projection all it stores all columns by
service, for half as much disk again.

--dry-run without an address prints the SQL for a new table; with one it first
looks at the server.`,
		Example: `  traceflake clickhouse create --dry-run
  traceflake clickhouse create --dsn clickhouse://localhost:9000/otel --ttl 30d
  traceflake clickhouse create --projection all`,
	}
	durationFlag(cmd, &schema.TTL, "ttl", 0, "how long a new table keeps spans, as in 30d "+
		"(default forever)")
	cmd.Flags().StringVar((*string)(&schema.Projection), "projection", "",
		"what is also stored by service: charts, none or all (default charts)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if s.dryRun && s.address() == "" {
			plan, err := schema.Plan(cmd.Context(), nil)
			if err == nil {
				_, err = fmt.Fprint(cmd.OutOrStdout(), plan.Script())
			}
			return err
		}
		return s.change(cmd, schema.Plan)
	}
	return cmd
}
