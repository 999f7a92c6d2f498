package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

func leaseCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease",
		Short: "Look at leases and raise them",
		Long: `lease looks at the leases in a store and raises them. TRACEFLAKE_NODES and
TRACEFLAKE_BLOCK_SIZE count as they do for setup.FromEnv.`,
		Args: cobra.NoArgs,
		RunE: subcommands,
	}
	cmd.PersistentFlags().StringVar(&f.store, "store", "", "bolt:PATH, postgres://… or etcd://… (default $TRACEFLAKE_STORE)")
	cmd.AddCommand(leaseListCommand(f), leaseShowCommand(f), leaseRaiseCommand(f))
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
		Short: "List the blocks that were ever granted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withStore(cmd, func(ctx context.Context, s driver.Store) error {
				blocks, err := s.List(ctx)
				if err != nil {
					return fmt.Errorf("store: %w", err)
				}
				return writeBlocks(cmd, output, blocks)
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func leaseShowCommand(f *flags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show NODE",
		Short: "Show the block that a node belongs to",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := strconv.ParseUint(args[0], 10, 32)
			if err != nil || node > randflake.MaxNode {
				return fmt.Errorf("%q is no node from 0 to %d", args[0], randflake.MaxNode)
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
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func leaseRaiseCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "raise UNTIL",
		Short: "Grant nothing before a time, and let no lease grow",
		Long: `raise makes sure that nothing before UNTIL is granted any more, and takes every
lease from its holder when it ends. It is for a store that came back from a
backup and may have forgotten leases: raise it, before it is used again, to the
time of the restore plus the longest TTL in use plus a minute.

` + timeHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := parseTime(args[0], time.Now())
			if err != nil {
				return fmt.Errorf("UNTIL: %w", err)
			}
			return f.withStore(cmd, func(ctx context.Context, s driver.Store) error {
				if err := s.Raise(ctx, until); err != nil {
					return fmt.Errorf("store: %w", err)
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "nothing before %s is granted any more\n", until.UTC().Format(time.RFC3339Nano))
				return err
			})
		},
	}
}

// state says whose a block is at now.
func state(b lease.Block, now time.Time) string {
	until := b.GrantedUntil.UTC().Format(time.RFC3339)
	switch {
	case b.GrantedUntil.IsZero():
		return "never granted"
	case b.Free(now):
		return "free since " + until
	case b.Holder == "":
		return "without a holder, free from " + until
	}
	return "held by " + b.Holder + " until " + until
}

// alike reports whether two blocks differ by nothing but their nodes. After a
// raise there are thousands of those.
func alike(a, b lease.Block) bool {
	return a.Holder == "" && a.Start.Equal(b.Start) && a.GrantedUntil.Equal(b.GrantedUntil) && a.Nodes == b.Nodes &&
		a.Holder == b.Holder && a.Version == b.Version
}

func writeBlocks(cmd *cobra.Command, output string, blocks []lease.Block) error {
	now := time.Now()
	switch output {
	case "json":
		enc := json.NewEncoder(cmd.OutOrStdout())
		for _, b := range blocks {
			row := struct {
				Node         uint32    `json:"node"`
				Nodes        uint32    `json:"nodes"`
				Start        time.Time `json:"start,omitzero"`
				GrantedUntil time.Time `json:"granted_until,omitzero"`
				Holder       string    `json:"holder"`
				Version      uint64    `json:"version"`
				Free         bool      `json:"free"`
			}{b.Node, b.Nodes, b.Start.UTC(), b.GrantedUntil.UTC(), b.Holder, b.Version, b.Free(now)}
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
	return fmt.Errorf("--output: %q is not table or json", output)
}
