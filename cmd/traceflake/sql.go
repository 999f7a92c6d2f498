package main

import (
	"fmt"

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
	var functions bool
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Print functions and tables for ClickHouse",
		Long: `clickhouse prints statements for clickhouse-client that create the functions and
the spans table. They can be run again at any time.`,
		Example: `  traceflake sql clickhouse --ttl 720h | clickhouse-client --multiquery
  traceflake sql clickhouse --functions | clickhouse-client --multiquery`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&functions, "functions", false, "print only the functions")
	schemaFlags(cmd, &schema)
	overlay := overlayFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		script := clickhouse.Functions()
		if !functions {
			if *overlay {
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
	}
	return cmd
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
