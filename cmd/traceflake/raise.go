package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

func leaseRaiseCommand(f *flags) *cobra.Command {
	var force, dryRun bool
	cmd := &cobra.Command{
		Use:   "raise UNTIL",
		Short: "Grant no seconds before a time, and renew no lease",
		Long: `raise ensures that nothing before UNTIL is granted any more and that no current
lease can be renewed. It is for a store that was restored from a backup and may
lack leases granted later: before the store is used again, raise it to the time
of the restore plus the longest TTL in use plus three minutes.

"now" is the store's time. etcd and bolt have none: there it is the time of this
machine, whose clock you must check, and with etcd also those of its clients.

It cannot be undone, and until then no process gets a lease. So it refuses a
time that is past, or further ahead than a missing lease can last, unless
--force is given. --dry-run shows what it would do.

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
			at, err := tellTime(ctx, cmd, s)
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
			if until != until.Truncate(time.Second) { // as stores do
				until = until.Truncate(time.Second).Add(time.Second)
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

// raiseTimeout bounds the writes of every block of a store.
const raiseTimeout = 2 * time.Minute

// now is this machine's clock.
var now = time.Now

// tellTime returns the store's time, or this machine's if the store has none,
// and says which of them it is.
func tellTime(ctx context.Context, cmd *cobra.Command, s driver.Store) (time.Time, error) {
	at, err := s.Time(ctx)
	if err != nil {
		return at, fmt.Errorf("store: %w", err)
	}
	whose := "by the store's clock"
	if at.IsZero() {
		at, whose = now(), "by this machine's clock, since the store has none; check it"
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
		return fmt.Errorf("%s is %s ahead, and until then no process would get a lease; every lease ends within %s, so give at most now+%s, or --force",
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
	var held []lease.Block
	granted, later := 0, 0
	for _, b := range blocks {
		if c.Nodes.Nodes > 0 && b.Node-c.Nodes.First >= c.Nodes.Nodes {
			continue // it is not in the range
		}
		if !b.Start.IsZero() {
			granted++
		}
		if b.GrantedUntil.After(until) {
			later++
		}
		if b.Nonce != "" && !driver.Block(b).Free(at) {
			held = append(held, b)
		}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "dry run, nothing is written: nothing before %s would be granted any more\n", until.UTC().Format(time.RFC3339))
	_, err = fmt.Fprintf(out, "%s ever granted; %s already unavailable until later\n",
		count(granted, "block was", "blocks were"), count(later, "block is", "blocks are"))
	if len(held) == 0 || err != nil {
		return err
	}
	fmt.Fprintf(out, "%s held now could not be renewed any more:\n", count(len(held), "lease", "leases"))
	return writeBlocks(cmd, "table", held)
}

// count returns n with the singular or the plural of what is counted.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
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
	first, unused := blocks[0].GrantedUntil, "; none of them was ever granted: is this the store that was restored?"
	for _, b := range blocks {
		if b.GrantedUntil.Before(first) {
			first = b.GrantedUntil
		}
		if !b.Start.IsZero() {
			unused = ""
		}
	}
	if first.Before(until) {
		return fmt.Errorf("after the raise to %[2]s a block can be granted from %[1]s on; was the store replaced?",
			first.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing before %s is granted any more: %s%s\n",
		first.UTC().Format(time.RFC3339), count(len(blocks), "block raised", "blocks raised"), unused)
	return err
}

func leaseMoveCommand(f *flags) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "move --to URL",
		Short: "Move nodes to another store, or to another block size",
		Long: `move moves the nodes of a store to another store, whatever the clocks of any
machine show: the new store grants nothing before the end of the last lease in
the old one, and the old one grants and renews nothing any more. Processes use
the leases that they have to the end. It cannot be undone; to move back, move to
another table, prefix, name or file there.

With TRACEFLAKE_NODES only those nodes are moved. TRACEFLAKE_BLOCK_SIZE is the
block size of the new store, if that has no data yet.`,
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
				return fmt.Errorf("%w; nothing is granted twice, so give the same command again", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the old store is closed; the new one grants leases from %s on\n", end.UTC().Format(time.RFC3339))
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "URL of the new store")
	return cmd
}

// used returns an error if nothing was ever granted by the store at url, which then
// is probably not the one that was meant.
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
		return errors.New("nothing was ever granted by the old store: is its URL right? If it is, use the new one at once")
	}
	return err
}
