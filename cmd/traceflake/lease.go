package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func leaseCommand(f *flags) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "lease",
		Short: "List leases and raise them",
		Long: `lease lists the leases in a store and raises them. TRACEFLAKE_NODES and
TRACEFLAKE_BLOCK_SIZE have the same meaning as for setup.FromEnv.`,
		Example: `  traceflake lease list --store bolt:/var/lib/traceflake/leases.db
  traceflake lease raise now+24h --dry-run --store postgres://db/traceflake`,
	}, leaseListCommand(f), leaseShowCommand(f), leaseRaiseCommand(f))
	cmd.PersistentFlags().StringVar(&f.store, "store", "", storeForms)
	completeStore(cmd)
	return cmd
}

// withStore opens the store for one call.
func (f *flags) withStore(cmd *cobra.Command, call func(context.Context, driver.Store) error) error {
	s, err := f.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), storeTimeout)
	defer cancel()
	return call(ctx, s)
}

func leaseListCommand(f *flags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the granted blocks and their holders",
		Long: `list shows the blocks of nodes that have been granted: from when, until when and
to which process. It never writes: it creates neither a file nor a table.`,
		Example: `  traceflake lease list --store bolt:/var/lib/traceflake/leases.db
  traceflake lease list --store etcd://host:2379/leases -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkChoice("output", output, blockOutputs...); err != nil {
				return err
			}
			return f.withStore(cmd, func(ctx context.Context, s driver.Store) error {
				blocks, err := s.List(ctx)
				if err != nil {
					return fmt.Errorf("store: %w", err)
				}
				return writeBlocks(cmd, output, blocks)
			})
		},
	}
	choice(cmd, &output, "output", "o", "a table or lines of JSON", blockOutputs...)
	return cmd
}

func leaseShowCommand(f *flags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:               "show NODE",
		Short:             "Show the block that a node belongs to",
		Example:           `  traceflake lease show 4711 --store bolt:/var/lib/traceflake/leases.db`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChoice("output", output, blockOutputs...); err != nil {
				return err
			}
			node, err := strconv.ParseUint(args[0], 10, 32)
			if err != nil || node > randflake.MaxNode {
				return fmt.Errorf("%q is not a node from 0 to %d", args[0], randflake.MaxNode)
			}
			return f.withStore(cmd, func(ctx context.Context, s driver.Store) error {
				blocks, err := s.List(ctx)
				if err != nil {
					return fmt.Errorf("store: %w", err)
				}
				for _, b := range blocks {
					if uint32(node) >= b.Node && uint32(node)-b.Node < b.Nodes {
						return writeBlocks(cmd, output, []lease.Block{b})
					}
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: node %d was never granted\n", node)
				return errReported
			})
		},
	}
	choice(cmd, &output, "output", "o", "a table or lines of JSON", blockOutputs...)
	return cmd
}

func leaseRaiseCommand(f *flags) *cobra.Command {
	var force, dryRun bool
	cmd := &cobra.Command{
		Use:   "raise UNTIL",
		Short: "Grant no seconds before a time, and renew no lease",
		Long: `raise ensures that nothing before UNTIL is granted any more and that no present
lease can be renewed. It is for a store that was restored from a backup and may
lack leases granted later: before the store is used again, raise it to the time
of the restore plus the longest TTL in use plus a minute.

It cannot be undone, and until then no process gets a lease. So it refuses a
time that is past, or further ahead than a missing lease can last, unless
--force is given. --dry-run shows what it would do.

` + timeHelp,
		Example: `  traceflake lease raise now+11m --dry-run --store postgres://db/traceflake
  traceflake lease raise now+11m --store postgres://db/traceflake`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			until, err := parseTime(args[0], now)
			if err == nil && !force {
				err = checkRaise(until, now)
			}
			if err != nil {
				return fmt.Errorf("UNTIL: %w", err)
			}
			return f.withStore(cmd, func(ctx context.Context, s driver.Store) error {
				if dryRun {
					return wouldRaise(ctx, cmd, s, until)
				}
				if err := s.Raise(ctx, until); err != nil {
					return fmt.Errorf("store: %w", err)
				}
				return raised(ctx, cmd, s, until)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also raise to a time that is past or far ahead")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "write nothing; show what would be raised")
	return cmd
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
func wouldRaise(ctx context.Context, cmd *cobra.Command, s driver.Store, until time.Time) error {
	blocks, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var held []lease.Block
	later := 0
	now := time.Now()
	for _, b := range blocks {
		if b.GrantedUntil.After(until) {
			later++
		}
		if b.Nonce != "" && !driver.Block(b).Free(now) {
			held = append(held, b)
		}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "dry run, nothing is written: nothing before %s would be granted any more\n", until.UTC().Format(time.RFC3339Nano))
	_, err = fmt.Fprintf(out, "%d blocks have been granted, %d of them until later; blocks never granted would be raised too\n", len(blocks), later)
	if len(held) == 0 || err != nil {
		return err
	}
	fmt.Fprintf(out, "%d leases held now could not be renewed any more:\n", len(held))
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
	first := blocks[0].GrantedUntil
	for _, b := range blocks {
		if b.GrantedUntil.Before(first) {
			first = b.GrantedUntil
		}
	}
	if first.Before(until.Truncate(time.Second)) {
		return fmt.Errorf("after the raise to %[2]s a block can be granted from %[1]s on; was the store replaced?",
			first.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "nothing before %s is granted any more: %d blocks raised\n", first.UTC().Format(time.RFC3339Nano), len(blocks))
	return err
}

// state describes the holder of a block at now.
func state(b lease.Block, now time.Time) string {
	until := b.GrantedUntil.UTC().Format(time.RFC3339)
	switch {
	case b.GrantedUntil.IsZero():
		return "never granted"
	case driver.Block(b).Free(now):
		return "free since " + until
	case b.Nonce == "":
		return "without a holder, free from " + until
	}
	if b.Owner == "" { // it was released recently, or its owner is empty
		return "without an owner (" + b.Nonce + "), free from " + until
	}
	return "held by " + b.Owner + " (" + b.Nonce + ") until " + until
}

// alike reports whether two blocks differ only in their nodes. After a raise
// there are thousands of such blocks.
func alike(a, b lease.Block) bool {
	return a.Nonce == "" && a.Start.Equal(b.Start) && a.GrantedUntil.Equal(b.GrantedUntil) && a.Nodes == b.Nodes &&
		a.Nonce == b.Nonce && a.Version == b.Version
}

func writeBlocks(cmd *cobra.Command, output string, blocks []lease.Block) error {
	now := time.Now()
	if len(blocks) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: no block has been granted yet")
		return nil
	}
	switch output {
	case "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		for _, b := range blocks {
			row := struct {
				Node         uint32    `json:"node"`
				Nodes        uint32    `json:"nodes"`
				Start        time.Time `json:"start,omitzero"`
				GrantedUntil time.Time `json:"granted_until,omitzero"`
				Nonce        string    `json:"holder"`
				Owner        string    `json:"owner,omitempty"`
				Version      uint64    `json:"version"`
				Free         bool      `json:"free"`
			}{b.Node, b.Nodes, b.Start.UTC(), b.GrantedUntil.UTC(), b.Nonce, b.Owner, b.Version, driver.Block(b).Free(now)}
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
		return nil
	case "table":
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NODES\tBLOCKS\tSTART\tVERSION\tSTATE")
		for i := 0; i < len(blocks); {
			b := blocks[i]
			last := b.Node + b.Nodes - 1
			for i++; i < len(blocks) && blocks[i].Node == last+1 && alike(blocks[i], b); i++ {
				last += blocks[i].Nodes
			}
			start := "-"
			if !b.Start.IsZero() {
				start = b.Start.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%d-%d\t%d\t%s\t%d\t%s\n", b.Node, last, (last-b.Node+1)/b.Nodes, start, b.Version, state(b, now))
		}
		return w.Flush()
	}
	return checkChoice("output", output, blockOutputs...)
}

var blockOutputs = []string{"table", "json"}
