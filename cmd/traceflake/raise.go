package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func leaseRaiseCommand(f *flags) *cobra.Command {
	var force, dryRun bool
	cmd := &cobra.Command{
		Use:   "raise UNTIL",
		Short: "Grant nothing before a time, and renew no lease",
		Long: `raise ensures that nothing before UNTIL is granted any more and that no current
lease can be renewed. Use it after a store was restored from a backup, which may
lack leases granted later: before the store is used again, raise it to the time
of the restore plus the longest TTL in use plus three minutes.

"now" is the store's time. etcd and bolt have no clock: with them it is the time of
this machine, so check its clock, and with etcd also the clocks of all clients.

A raise cannot be undone, and no process gets a lease before UNTIL. A time that is
past, or later than a missing lease can end, is refused without --force.
--dry-run shows what a raise would do.

` + timeHelp,
		Example: `  traceflake lease raise now+13m --dry-run --store postgres://db/traceflake
  traceflake lease raise now+13m --store postgres://db/traceflake`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := parseTime(args[0], now()); err != nil { // before the store is asked for its time
				return fmt.Errorf("UNTIL: %w", err)
			}
			use := writing
			if dryRun {
				use = reading
			}
			s, err := f.openStore(cmd.Context(), use)
			if err != nil {
				return err
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), raiseTimeout)
			defer cancel()
			at, err := storeTime(ctx, cmd, s)
			if err != nil {
				return err
			}
			until, err := parseTime(args[0], at)
			if err == nil && !force {
				err = checkRaise(until, at)
			}
			if err != nil {
				return fmt.Errorf("UNTIL: %w", err)
			}
			if dryRun {
				return f.wouldRaise(ctx, cmd, s, until, at)
			}
			if err := s.Raise(ctx, until); err != nil {
				return fmt.Errorf("store: %w", err)
			}
			return raised(ctx, cmd, s, until)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also raise to a time that is past or far ahead")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "write nothing; show what would be raised")
	return cmd
}

// raiseTimeout limits how long it may take to write every block of a store.
const raiseTimeout = 2 * time.Minute

// now is this machine's clock.
var now = time.Now

// storeTime returns and prints the store's time, or this machine's if the store has no clock.
func storeTime(ctx context.Context, cmd *cobra.Command, s driver.Store) (time.Time, error) {
	at, err := s.Time(ctx)
	if err != nil {
		return at, fmt.Errorf("store: %w", err)
	}
	whose := "by the store's clock"
	if at.IsZero() {
		at, whose = now(), "by this machine's clock, because the store has none; check it"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "now is %s, %s\n", at.UTC().Format(time.RFC3339), whose)
	return at, err
}

// furthest is how far ahead a missing lease can end.
const furthest = lease.MaxTTL + lease.MaxClockAhead

// checkRaise refuses times that are probably mistakes.
func checkRaise(until, now time.Time) error {
	at := until.UTC().Format(time.RFC3339)
	switch ahead := until.Sub(now); {
	case ahead < 0:
		return fmt.Errorf("%s is %s ago; give a time in the future, or --force", at, (-ahead).Round(time.Second))
	case ahead > furthest:
		return fmt.Errorf("%s is %s ahead, and no process would get a lease before it; every lease ends within %s, so give at most now+%s, or --force",
			at, ahead.Round(time.Second), furthest, furthest)
	}
	return nil
}

// wouldRaise shows what a raise would do.
func (f *flags) wouldRaise(ctx context.Context, cmd *cobra.Command, s driver.Store, until, at time.Time) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	blocks, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var held []lease.Grant
	granted, later := 0, 0
	for _, b := range blocks {
		if c.Nodes.Nodes > 0 && b.Node-c.Nodes.First >= c.Nodes.Nodes {
			continue // outside of TRACEFLAKE_NODES
		}
		if !b.Start.IsZero() {
			granted++
		}
		if b.End.After(until) {
			later++
		}
		if b.Nonce != "" && !driver.Block(b).Free(at) {
			held = append(held, b)
		}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), `dry run, nothing is written: nothing before %s would be granted any more
blocks ever granted: %d; already unavailable until later: %d
current leases that could not be renewed any more: %d
`, until.UTC().Format(time.RFC3339), granted, later, len(held))
	if len(held) == 0 || err != nil {
		return err
	}
	return writeBlocks(cmd, "table", held)
}

// raised reports the state of the store after a raise.
func raised(ctx context.Context, cmd *cobra.Command, s driver.Store, until time.Time) error {
	blocks, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("the store was raised, but cannot be read: %w", err)
	}
	if len(blocks) == 0 {
		return errors.New("the store has no blocks after the raise; was it replaced in the meantime?")
	}
	first := slices.MinFunc(blocks, func(a, b lease.Grant) int { return a.End.Compare(b.End) }).End
	if first.Before(until) {
		return fmt.Errorf("after the raise to %[2]s a block can be granted from %[1]s on; was the store replaced?",
			first.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	unused := "; none of them was ever granted: is this the store that was restored?"
	if slices.ContainsFunc(blocks, func(b lease.Grant) bool { return !b.Start.IsZero() }) {
		unused = ""
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing before %s is granted any more; blocks raised: %d%s\n",
		first.UTC().Format(time.RFC3339), len(blocks), unused)
	return err
}

func leaseMoveCommand(f *flags) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "move --to URL",
		Short: "Move nodes to another store, or to another block size",
		Long: `move moves the nodes of a store to another store. The new store grants nothing
before the end of the last lease in the old one, and the old one grants and renews
nothing any more, whatever any machine's clock shows. Processes keep their current
leases to the end. A move cannot be undone; to move back, use another table,
prefix, name or file in the first store.

With TRACEFLAKE_NODES only those nodes are moved. TRACEFLAKE_BLOCK_SIZE is the
block size of the new store if that has no data yet.`,
		Example: `  traceflake lease move --store etcd://host:2379 --to postgres://db/traceflake
  traceflake lease move --store bolt:old.db --to bolt:new.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.config()
			switch {
			case err != nil:
				return err
			case c.Store == "":
				return errNoStore
			case to == "":
				return errors.New("no new store: give --to")
			case to == c.Store:
				return errors.New("--to is the old store")
			}
			if err := used(cmd.Context(), c.Store); err != nil {
				return err
			}
			old := c.Nodes
			old.BlockSize = 0 // its own
			from, err := openURL(cmd.Context(), c.Store, old, writing)
			if err != nil {
				return err
			}
			defer from.Close()
			next, err := openURL(cmd.Context(), to, c.Nodes, creating)
			if err != nil {
				return fmt.Errorf("--to: %w", err)
			}
			defer next.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*raiseTimeout)
			defer cancel()
			end, err := driver.Move(ctx, from, next)
			if err != nil {
				return fmt.Errorf("%w; nothing is granted twice: run the same command again", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the old store is closed; the new one grants leases from %s on\n", end.UTC().Format(time.RFC3339))
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "URL of the new store")
	return cmd
}

// used returns an error if nothing was ever granted by the store at url: it is probably not the
// one that was meant.
func used(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	s, err := openURL(ctx, url, driver.NodeRange{}, reading)
	if err != nil {
		return err
	}
	defer s.Close()
	blocks, err := s.List(ctx)
	if err == nil && len(blocks) == 0 {
		return errors.New("nothing was ever granted by the old store: is its URL right? If so, just use the new store")
	}
	return err
}
