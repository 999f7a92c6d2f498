package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
		Short: "Create a lease store, list its leases, register a secret, raise it",
		Long: `lease manages the store from which processes lease nodes. An operator creates it
once; no other command creates anything. list and show write nothing.`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease list --store bolt:/var/lib/traceflake/leases.db
  traceflake lease raise --dry-run --store postgres://db/traceflake`,
	}, leaseCreateCommand(f), leaseListCommand(f), leaseShowCommand(f), leaseSecretCommand(f), leaseRaiseCommand(f))
	f.addStore(cmd, cmd.PersistentFlags(), "store of the leases")
	return cmd
}

func leaseListCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the granted blocks and their holders",
		Long: `list shows the blocks of nodes that have been granted: from when, until when and
to which process. It writes nothing and creates neither a file nor a table.`,
		Example: `  traceflake lease list --store bolt:/var/lib/traceflake/leases.db
  traceflake lease list --store etcd://host:2379/leases -o json`,
		Args: cobra.NoArgs,
	}
	output := blocksOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		blocks, err := f.blocks(cmd)
		if err != nil {
			return err
		}
		if len(blocks) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "traceflake: no block has been granted yet")
			return nil
		}
		return writeBlocks(cmd, *output, blocks)
	}
	return cmd
}

func leaseShowCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show NODE",
		Short:             "Show the block that a node belongs to",
		Example:           `  traceflake lease show 4711 --store bolt:/var/lib/traceflake/leases.db`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := blocksOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil || node > randflake.MaxNode {
			return fmt.Errorf("%q is not a node from 0 to %d", args[0], randflake.MaxNode)
		}
		blocks, err := f.blocks(cmd)
		if err != nil {
			return err
		}
		b, ok := blockOf(blocks, uint32(node))
		if !ok {
			fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: node %d was never granted\n", node)
			return errReported
		}
		return writeBlocks(cmd, *output, []lease.Grant{b})
	}
	return cmd
}

// blocks returns the blocks of the store.
func (f *flags) blocks(cmd *cobra.Command) ([]lease.Grant, error) {
	s, err := f.openStore()
	if err != nil {
		return nil, err
	}
	defer closeStore(s)
	ctx, cancel := context.WithTimeout(cmd.Context(), storeTimeout)
	defer cancel()
	blocks, err := s.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return blocks, nil
}

// blockOf returns the block that a node belongs to, if that was ever granted.
func blockOf(blocks []lease.Grant, node uint32) (lease.Grant, bool) {
	i := slices.IndexFunc(blocks, func(b lease.Grant) bool { return node >= b.Node && node-b.Node < b.Nodes })
	if i < 0 {
		return lease.Grant{}, false
	}
	return blocks[i], true
}

// state describes the holder of a block at now.
func state(b lease.Grant, now time.Time) string {
	until := b.End.UTC().Format(time.RFC3339)
	switch {
	case b.End.IsZero():
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

func blocksOutput(cmd *cobra.Command) *string {
	return choiceFlag(cmd, "output", "o", "table, or one JSON object per line", "table", "json")
}

func writeBlocks(cmd *cobra.Command, output string, blocks []lease.Grant) error {
	if output == "json" {
		return writeJSON(cmd, blocks)
	}
	now := time.Now()
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODES\tBLOCKS\tSTART\tVERSION\tSTATE")
	for len(blocks) > 0 {
		first := blocks[0]
		n := 1
		for n < len(blocks) && alike(first, blocks[n]) && blocks[n].Node == blocks[n-1].Node+first.Nodes {
			n++
		}
		start := "-"
		if !first.Start.IsZero() {
			start = first.Start.UTC().Format(time.RFC3339)
		}
		last := blocks[n-1].Node + first.Nodes - 1
		fmt.Fprintf(w, "%d-%d\t%d\t%s\t%d\t%s\n", first.Node, last, n, start, first.Version, state(first, now))
		blocks = blocks[n:]
	}
	return w.Flush()
}

// alike reports whether two blocks differ only in their nodes. After a raise
// there are thousands of such blocks.
func alike(a, b lease.Grant) bool {
	return a.Nonce == "" && b.Nonce == "" && a.Start.Equal(b.Start) && a.End.Equal(b.End) &&
		a.Nodes == b.Nodes && a.Version == b.Version
}

func writeJSON(cmd *cobra.Command, blocks []lease.Grant) error {
	now := time.Now()
	enc := json.NewEncoder(cmd.OutOrStdout())
	for _, b := range blocks {
		err := enc.Encode(struct {
			Node    uint32    `json:"node"`
			Nodes   uint32    `json:"nodes"`
			Start   time.Time `json:"start,omitzero"`
			End     time.Time `json:"granted_until,omitzero"`
			Nonce   string    `json:"holder"`
			Owner   string    `json:"owner,omitempty"`
			Version uint64    `json:"version"`
			Free    bool      `json:"free"`
		}{b.Node, b.Nodes, b.Start.UTC(), b.End.UTC(), b.Nonce, b.Owner, b.Version, driver.Block(b).Free(now)})
		if err != nil {
			return err
		}
	}
	return nil
}
