package main

import (
	"context"
	"encoding/json"
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
		Short: "List leases, raise them, move them to another store",
		Long: `lease lists the leases in a store, raises them after a restore, and moves them to
another store. list and show always read the whole store and write nothing. raise
and move are for the nodes given by TRACEFLAKE_NODES, as setup.FromEnv is.`,
		Example: `  traceflake lease list --store bolt:/var/lib/traceflake/leases.db
  traceflake lease raise now+13m --dry-run --store postgres://db/traceflake
  traceflake lease move --store etcd://host:2379 --to postgres://db/traceflake`,
	}, leaseListCommand(f), leaseShowCommand(f), leaseRaiseCommand(f), leaseMoveCommand(f))
	cmd.PersistentFlags().StringVar(&f.store, "store", "", storeForms())
	completeStore(cmd)
	return cmd
}

// withBlocks opens the store for reading, and calls f with its blocks.
func (f *flags) withBlocks(cmd *cobra.Command, call func([]lease.Block) error) error {
	s, err := f.openStore(cmd.Context(), reading)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), storeTimeout)
	defer cancel()
	blocks, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return call(blocks)
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
			return f.withBlocks(cmd, func(blocks []lease.Block) error { return writeBlocks(cmd, output, blocks) })
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
			return f.withBlocks(cmd, func(blocks []lease.Block) error {
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

// state describes the holder of a block at now.
func state(b lease.Block, now time.Time) string {
	until := b.GrantedUntil.UTC().Format(time.RFC3339)
	switch {
	case b.GrantedUntil.IsZero():
		return "never granted"
	case driver.Block(b).Closed():
		return "closed: moved to another store"
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
