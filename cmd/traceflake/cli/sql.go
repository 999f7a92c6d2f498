package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/postgres"
)

func sqlCommand() *cobra.Command {
	var schema string
	forPostgres := &cobra.Command{
		Use:     "postgres",
		Short:   "Print functions for PostgreSQL",
		Long:    "postgres prints statements for psql that create the functions, and can be run again.",
		Example: "  traceflake sql postgres --schema tools | psql",
		RunE: func(cmd *cobra.Command, _ []string) error {
			statements, err := postgres.Statements(schema)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(statements, ";\n\n")+";")
			}
			return err
		},
	}
	forPostgres.Flags().StringVar(&schema, "schema", "", "schema (default the first in the search path)")
	return group(&cobra.Command{
		Use:     "sql",
		Short:   "Print SQL functions for trace IDs",
		Example: "  traceflake sql postgres | psql",
	}, forPostgres, &cobra.Command{
		Use:   "clickhouse",
		Short: "Print functions for ClickHouse",
		Long: `clickhouse prints statements for clickhouse-client that create the functions, and
can be run again. "clickhouse create --dry-run" prints those of tables.`,
		Example: "  traceflake sql clickhouse | clickhouse-client --multiquery",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), clickhouse.Functions())
			return err
		},
	})
}
