package cli

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/clickhouse"
)

// change prints a plan as a script, and runs each step after it was printed unless this is a dry
// run.
func (s *spansServer) change(cmd *cobra.Command,
	plan func(context.Context, *sql.DB) (clickhouse.Plan, error)) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	return s.with(ctx, func(db *sql.DB) error {
		p, err := plan(ctx, db)
		if err != nil {
			return err
		}
		if !s.dryRun {
			if err := p.Run(ctx, db, func(step clickhouse.Step) {
				fmt.Fprint(out, step.Script())
				_ = flush(cmd) // its error is returned again at the end
			}); err != nil {
				return err
			}
			p.Steps = nil // printed
		}
		_, err = fmt.Fprint(out, p.Script())
		return err
	})
}
