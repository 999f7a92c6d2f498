package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/contrib/postgres"
)

func postgresCommand() *cobra.Command {
	var schema string
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Print functions on trace IDs for PostgreSQL",
		Long: "postgres prints statements for psql that create the functions, and can be run " +
			"again.",
		Example: "  traceflake postgres --schema tools | psql",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "\\set ON_ERROR_STOP on\n%s;\n",
				strings.Join(postgres.Statements(schema), ";\n\n"))
			return err
		},
	}
	cmd.Flags().StringVar(&schema, "schema", "", "schema (default the first in the search path)")
	return cmd
}
