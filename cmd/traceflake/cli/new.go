package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/setup"
)

func newCommand(f *flags) *cobra.Command {
	var n int
	var at string
	var span bool
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Generate trace IDs",
		Long: `new generates trace IDs, one per line. With a store the nodes are leased, and the IDs
are unique in the fleet. Without one, the secret is random and not kept.

--at generates trace IDs for records of that time, which do not verify. With "-" it
reads times from standard input, one per line, and prints an ID for each.
` + timeHelp,
		Example: `  traceflake new -n 1000 --store bolt:/var/lib/traceflake/leases.db
  traceflake new --at 2021-05-06T07:08:09Z
  traceflake new --at - <times >ids
  traceflake new --span`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			generate := func(ids *setup.IDs) (fmt.Stringer, error) {
				id, _ := ids.NewIDs(cmd.Context())
				return id, nil
			}
			switch {
			case n < 1:
				return fmt.Errorf("-n: %d is less than 1", n)
			case at != "" && span:
				return errors.New("--at is for trace IDs; a span ID always has the current time")
			case span:
				generate = func(ids *setup.IDs) (fmt.Stringer, error) {
					return ids.NewSpanID(cmd.Context(), trace.TraceID{}), nil
				}
			case at != "" && at != "-":
				t, err := parseTime(at, time.Now())
				if err != nil {
					return fmt.Errorf("--at: %w", err)
				}
				generate = func(ids *setup.IDs) (fmt.Stringer, error) { return ids.NewTraceIDAt(t) }
			}
			c, err := f.config()
			if err != nil {
				return err
			}
			c.Strict = c.Store != ""
			ids, err := c.Open(cmd.Context())
			if err != nil {
				return err
			}
			defer func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), storeTimeout)
				defer cancel()
				err = errors.Join(err, ids.Shutdown(ctx))
			}()
			if at == "-" {
				return eachLine(cmd, func(number int, text string, problem error) error {
					t, err := parseTime(text, time.Now())
					if err = cmp.Or(problem, err); err == nil {
						err = writeNew(cmd, ids, func(ids *setup.IDs) (fmt.Stringer, error) { return ids.NewTraceIDAt(t) })
					}
					if err != nil {
						err = fmt.Errorf("line %d: %w", number, err)
					}
					return err
				})
			}
			for i := 0; i < n && err == nil; i++ {
				err = writeNew(cmd, ids, generate)
			}
			return err
		},
	}
	f.addStore(cmd.Flags(), "store to lease nodes from")
	f.addSecret(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&at, "at", "", "generate IDs for records of this time")
	cmd.Flags().BoolVar(&span, "span", false, "generate span IDs")
	return cmd
}

// writeNew writes a new ID. It fails where a service would use a random one.
func writeNew(cmd *cobra.Command, ids *setup.IDs, generate func(*setup.IDs) (fmt.Stringer, error)) error {
	id, err := generate(ids)
	switch {
	case err != nil:
		return err
	case ids.Fallbacks() > 0:
		return errors.New("no leased node to generate IDs on; the store's answer is above")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
	return cmp.Or(err, context.Cause(cmd.Context()))
}
