package cli

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/compare"
)

func clickhouseCompareCommand(s *spansServer) *cobra.Command {
	var hours int
	var yes bool
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare the spans table with a new one, on its own newest spans",
		Long: `compare copies the newest spans of the table into two new tables: one is defined
as the table itself, and the other as adopt would define it. It merges both, asks them
the questions of tools about your services and traces, and prints for each question the
megabytes from files / thousands of rows / milliseconds of both, and in parentheses the
second's megabytes as a share of the first's.

It says how much space it needs and asks before it writes. It drops its tables at the end,
also after an error or an interruption, and changes nothing else. Meanwhile everybody who
may read the database can read the copies, without the table's row policies. The server's
caches are not emptied. It needs the rights CREATE TABLE, CREATE VIEW, DROP TABLE, DROP
VIEW, ALTER, SELECT, INSERT and OPTIMIZE on the database.`,
		Example: `  traceflake clickhouse compare
  traceflake clickhouse compare --hours 6 --yes`,
	}
	cmd.Flags().IntVar(&hours, "hours", 2, "how many hours of spans")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask before writing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, out := cmd.Context(), cmd.OutOrStdout()
		if hours < 1 {
			return errors.New("--hours is at least 1")
		}
		return s.with(ctx, func(db *sql.DB) error {
			copies, err := compare.Look(ctx, db, s.adoption(), hours)
			if err != nil {
				return err
			}
			fmt.Fprint(out, copies)
			if copies.Needs > copies.Free {
				return withFix("compare fewer --hours, or free some space",
					"clickhouse: there is not enough space")
			}
			if s.dryRun {
				return nil
			}
			if !yes {
				fmt.Fprint(out, "continue? [y/N] ")
				if err := flush(cmd); err != nil {
					return err
				}
				answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
				if !strings.EqualFold(strings.TrimSpace(answer), "y") {
					return errors.Join(err,
						errors.New("nothing was written: answer y, or use --yes"))
				}
			}
			tables, err := copies.Run(ctx)
			if len(tables) > 0 {
				err = errors.Join(compare.Write(out, tables), err)
			}
			return err
		})
	}
	return cmd
}
