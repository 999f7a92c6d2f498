package cli

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

// change runs a plan, printing each step and then the notes, and calls ended, which may be nil; or
// it prints the plan.
func (s *spansServer) change(cmd *cobra.Command,
	plan func(context.Context, *sql.DB) (clickhouse.Plan, error),
	ended func(context.Context, *sql.DB) error) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	err := s.with(ctx, func(db *sql.DB) error {
		p, err := plan(ctx, db)
		if err != nil {
			return err
		}
		if s.dryRun {
			_, err := fmt.Fprint(out, p.Script()) // has the notes as comments
			return err
		}
		if len(p.Steps) == 0 {
			fmt.Fprintln(out, "nothing is left to do")
		}
		if err := p.Run(ctx, db, func(step clickhouse.Step) {
			fmt.Fprintln(out, step.Does)
			for _, undo := range step.Undo {
				fmt.Fprintln(out, "  to undo this:", strings.ReplaceAll(undo, "\n", " "))
			}
			_ = flush(cmd) // its error is returned again at the end
		}); err != nil {
			return err
		}
		for _, note := range p.Notes {
			fmt.Fprintln(out, "note:", note)
		}
		if ended == nil {
			return nil
		}
		return ended(ctx, db)
	})
	if notEnoughPrivileges := (causes{code(497)}); notEnoughPrivileges.of(err) {
		err = fmt.Errorf("%w\ngrant this to the user and run the same command again; it "+
			"continues where it stopped", err)
	}
	return err
}
