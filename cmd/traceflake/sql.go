package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/postgres"
)

func sqlCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "sql",
		Short:   "Print SQL functions and tables",
		Example: "  traceflake sql postgres | psql",
	}, sqlClickHouseCommand(), sqlPostgresCommand())
}

func sqlClickHouseCommand() *cobra.Command {
	var schema clickhouse.Schema
	var ttl time.Duration
	var functions, overlay bool
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Print functions and tables for ClickHouse",
		Long: `clickhouse prints what clickhouse-client takes to make the functions and the
table of spans. It may be run again at any time.`,
		Example: `  traceflake sql clickhouse --ttl 720h | clickhouse-client --multiquery
  traceflake sql clickhouse --functions | clickhouse-client --multiquery`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			script := clickhouse.Functions()
			if !functions {
				schema.TTL = ttl
				if overlay {
					schema.Layout = clickhouse.Overlay
				}
				statements, err := schema.Statements()
				if err != nil {
					return err
				}
				script = clickhouse.Script(statements)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), script)
			return err
		},
	}
	cmd.Flags().BoolVar(&functions, "functions", false, "only the functions")
	cmd.Flags().BoolVar(&overlay, "overlay", false, "leave the table as the Collector's exporter made it")
	cmd.Flags().StringVar(&schema.Database, "database", "", "database (default the connection's)")
	cmd.Flags().StringVar(&schema.Table, "table", "", "table (default otel_traces)")
	cmd.Flags().StringVar(&schema.Cluster, "cluster", "", "cluster (default one server)")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long spans are kept, as in 720h (default for ever)")
	return cmd
}

func sqlPostgresCommand() *cobra.Command {
	var schema string
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Print functions for PostgreSQL",
		Long: `postgres prints what psql takes to make the functions. It may be run again at
any time.`,
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
	cmd.Flags().StringVar(&schema, "schema", "", "schema (default the first of the search path)")
	return cmd
}
