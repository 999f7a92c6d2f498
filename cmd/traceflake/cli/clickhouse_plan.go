package cli

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

// change runs a plan, printing each step, or prints the plan. It returns the plan.
func (s *spansServer) change(cmd *cobra.Command,
	plan func(context.Context, *sql.DB) (clickhouse.Plan, error)) (p clickhouse.Plan, err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	err = s.with(ctx, func(db *sql.DB) (err error) {
		if p, err = plan(ctx, db); err != nil {
			return err
		}
		if s.dryRun {
			_, err := fmt.Fprint(out, p.Script())
			return err
		}
		if len(p.Steps) == 0 {
			fmt.Fprintln(out, "nothing is left to do")
		}
		return p.Run(ctx, db, func(step clickhouse.Step) {
			fmt.Fprintln(out, step.Does)
			for _, undo := range step.Undo {
				fmt.Fprintln(out, "  to undo this:", strings.ReplaceAll(undo, "\n", " "))
			}
			_ = flush(cmd) // its error is returned again at the end
		})
	})
	notEnoughPrivileges := causes{code(497)}
	switch {
	case err != nil && notEnoughPrivileges.of(err):
		err = fmt.Errorf("%w\ngrant this to the user and run the same command again; it "+
			"continues where it stopped", err)
	case err == nil && !s.dryRun: // a script has the notes as comments
		for _, note := range p.Notes {
			fmt.Fprintln(out, "note:", note)
		}
	}
	return p, err
}
