package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/postgres"
)

func sqlCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "sql",
		Short:   "Print SQL functions for trace IDs",
		Example: "  traceflake sql postgres | psql",
	}, sqlClickHouseCommand(), sqlPostgresCommand())
}

func sqlClickHouseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clickhouse",
		Short: "Print functions for ClickHouse",
		Long: `clickhouse prints statements for clickhouse-client that create the functions. They
can be run again at any time. "clickhouse create --dry-run" prints those of tables.`,
		Example: "  traceflake sql clickhouse | clickhouse-client --multiquery",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), clickhouse.Functions())
			return err
		},
	}
}

func sqlPostgresCommand() *cobra.Command {
	var schema string
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Print functions for PostgreSQL",
		Long: `postgres prints statements for psql that create the functions. They can be run
again at any time.`,
		Example: "  traceflake sql postgres --schema tools | psql",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			statements, err := postgres.Statements(schema)
			if err != nil {
				return err
			}
			for _, s := range statements {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s;\n\n", s); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&schema, "schema", "", "schema (default the first in the search path)")
	return cmd
}
