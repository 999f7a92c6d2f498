package cli

import (
	"context"
	"database/sql"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

func clickhouseAdoptCommand(s *spansServer) *cobra.Command {
	var checked bool
	prepare := adoptStep(s, "prepare", "Create the new table and the view of both",
		func(a clickhouse.Adoption, ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
			a.PoliciesChecked = checked
			return a.Prepare(ctx, db)
		})
	prepare.Flags().BoolVar(&checked, "policies-checked", false,
		"somebody else has created the row policies that this user may not see")
	return group(&cobra.Command{
		Use:   "adopt",
		Short: "Put a new table in the place of the exporter's, without copying",
		Long: `adopt puts a table like that of create in the place of an existing one, under its
name and without copying spans: neither the Collector nor the tools change. prepare
creates the new table alongside the old one, with its TTL, settings, engine and your own
columns; swap exchanges their names; undo exchanges them back. Then tools show only new
spans under the name; a view, otel_traces_all, shows both.

Each step prints its statements with comments, and runs them; with --dry-run or
--cluster it only prints them. It can be repeated, and ends with what can be done next.`,
		Example: `  traceflake clickhouse adopt prepare
  traceflake clickhouse adopt swap`,
	},
		prepare,
		adoptStep(s, "swap", "Give the new table the name that the Collector writes to",
			clickhouse.Adoption.Swap),
		adoptStep(s, "undo", "Give the old table its name back", clickhouse.Adoption.Undo))
}

// adoptStep returns the command for a step of an adoption.
func adoptStep(s *spansServer, name, short string,
	plan func(clickhouse.Adoption, context.Context, *sql.DB) (clickhouse.Plan, error),
) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Example: "  traceflake clickhouse adopt " + name +
			" --dsn clickhouse://localhost:9000/otel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.dryRun = s.dryRun || s.schema.Cluster != "" // which was tried nowhere
			return s.change(cmd,
				func(ctx context.Context, db *sql.DB) (clickhouse.Plan, error) {
					return plan(s.adoption(), ctx, db)
				})
		},
	}
}

// adoption is the adoption of the table that the flags name.
func (s *spansServer) adoption() clickhouse.Adoption {
	return clickhouse.Adoption{Database: s.schema.Database, Table: s.schema.Table,
		Cluster: s.schema.Cluster}
}
