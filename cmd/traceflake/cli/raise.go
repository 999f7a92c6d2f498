package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

func leaseRaiseCommand(f *commonFlags) *cobra.Command {
	var r raising
	cmd := &cobra.Command{
		Use:   "raise",
		Short: "After a restore from a backup, prevent leases from being granted twice",
		Long: `raise is for a store that was restored from a backup and may lack leases that were
granted later. Run it before any process uses the store. Afterwards the store grants
and renews nothing until the last of those leases is over: for its longest TTL and
three minutes, by the store's clock. etcd and file stores have no clock of their own:
check the clock of this machine and, with etcd, those of all clients.

A store that was moved, or restored elsewhere, is refused until you run raise
--moved-here. Do so only if the original is gone for good: two copies would lease the
same nodes twice.

Without --yes, raise shows what it would do, and writes nothing. If it fails, run it
again: a raise that is repeated, or run by two operators at once, is one raise.`,
		Example: `  traceflake lease raise --store postgres://db/traceflake
  traceflake lease raise --store postgres://db/traceflake --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withStore(cmd, raiseTimeout, func(ctx context.Context, s stores.Store) error {
				return r.run(ctx, cmd.OutOrStdout(), s)
			})
		},
	}
	cmd.Flags().BoolVar(&r.movedHere, "moved-here", false,
		"the store was created elsewhere, where it is gone for good")
	cmd.Flags().BoolVar(&r.yes, "yes", false,
		"raise the store; without it, only show what would be done")
	return cmd
}

// raising holds the flags of the command.
type raising struct{ yes, movedHere bool }

func (r raising) run(ctx context.Context, out io.Writer, s stores.Store) error {
	d, err := describe(ctx, s)
	moved := r.movedHere && errors.Is(err, lease.ErrMoved)
	if err != nil && !errors.Is(err, lease.ErrRaising) && !moved {
		return err
	}
	at, whose, err := storeTime(ctx, s)
	if err != nil {
		return err
	}
	until := protocol.AfterLeases(at, d.LongestTTL)
	fmt.Fprintf(out, "now is %s, by %s\n", rfc3339(at), whose)
	switch {
	case r.yes:
		return r.raise(ctx, out, s, until)
	case moved: // its leases cannot be listed
		return errNotRaised
	}
	blocks, err := s.List(ctx)
	if err != nil {
		return err
	}
	blocks = slices.DeleteFunc(blocks,
		func(b lease.Grant) bool { return b.Nonce == "" || b.Free(at) })
	fmt.Fprintf(out, "nothing before %s would be granted any more\n"+
		"current leases that could not be renewed any more: %d\n",
		rfc3339(protocol.RaiseTo(d.Raised, until, at)), len(blocks))
	return errors.Join(writeBlocks(out, "text", blocks), errNotRaised)
}

func (r raising) raise(ctx context.Context, out io.Writer, s stores.Store, until time.Time) error {
	raise := s.Raise
	if r.movedHere {
		raise = s.MovedHere
	}
	until, err := raise(ctx, until)
	if err != nil {
		return fmt.Errorf("%w; run the same command again", err)
	}
	_, err = fmt.Fprintf(out, "raised: nothing before %s is granted any more\n", rfc3339(until))
	return err
}

var errNotRaised = errors.New(
	"nothing was written: if this is what you want, run the same command with --yes")

// raiseTimeout limits how long it may take to write every block of a store.
const raiseTimeout = 2 * time.Minute

// now is this machine's clock.
var now = time.Now

// storeTime returns the store's time, or this machine's if the store has no clock.
func storeTime(ctx context.Context, s stores.Store) (at time.Time, whose string, err error) {
	if at, err = s.Time(ctx); err == nil && at.IsZero() {
		return now(), "this machine's clock, because the store has none; check it", nil
	}
	return at, "the store's clock", err
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }
