package cli

import (
	"database/sql"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

func clickhouseStatusCommand(s *spansServer) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the spans table, and how far its adoption is",
		Example: "  traceflake clickhouse status --dsn clickhouse://localhost:9000/otel",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(cmd.Context(), func(db *sql.DB) error {
				status, err := s.adoption().Status(cmd.Context(), db)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				for _, t := range status.Tables {
					printStatus(out, t)
				}
				if status.Problem != nil {
					fmt.Fprintln(out, "problem:", status.Problem)
				}
				if status.Obstacle != nil {
					_, err = fmt.Fprintln(out, "cannot be adopted:", status.Obstacle)
					return err
				}
				_, err = fmt.Fprintf(out, "the adoption is %s; %s\n", status.Phase, status.Next)
				return err
			})
		},
	}
}

func printStatus(out io.Writer, t clickhouse.TableStatus) {
	name := t.Table
	if t.New {
		name += ", the new table of an adoption"
	}
	fmt.Fprintln(out, name)
	for _, fact := range t.Facts {
		fmt.Fprintf(out, "  %-15s %s\n", fact.Name, fact.Value)
	}
}
