package cli

import (
	"context"
	"errors"
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

func leaseCommand(f *commonFlags) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "lease",
		Short: "Create a lease store, list its leases, register a secret, raise it",
		Long: `lease manages the store from which processes lease nodes. An operator creates the
store once, with lease create; no other command creates it.`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease list --store file:/var/lib/traceflake/leases
  traceflake lease raise --store postgres://db/traceflake`,
	}, leaseCreateCommand(f), leaseListCommand(f), leaseShowCommand(f), leaseSecretCommand(f),
		leaseRaiseCommand(f))
	f.addStore(cmd.PersistentFlags(), "store of the leases")
	return cmd
}

func leaseListCommand(f *commonFlags) *cobra.Command {
	var held bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the granted blocks and their owners",
		Long: `list shows the blocks of nodes that were ever granted: to which process, from when
and until when, and how many are taken now. It writes nothing.

With -o json each block is an object on a line of its own:
{"node":64,"nodes":8,"start":"…","end":"…","nonce":"…","owner":"","version":3,"free":false}`,
		Example: `  traceflake lease list --held --store file:/var/lib/traceflake/leases
  traceflake lease list --store etcd://host:2379/leases -o json`,
	}
	output := outputFlag(cmd)
	cmd.Flags().BoolVar(&held, "held", false, "only blocks that are taken now")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.withDescription(cmd, storeTimeout,
			func(ctx context.Context, s driver.Store, d lease.Description) error {
				blocks, err := s.List(ctx)
				if err != nil {
					return err
				}
				taken := taken(blocks)
				fmt.Fprintf(cmd.ErrOrStderr(),
					"traceflake: %d of %d blocks are taken; %d were ever granted or raised\n",
					len(taken), d.Blocks(), len(blocks))
				if held {
					blocks = taken
				}
				return writeBlocks(cmd, *output, blocks)
			})
	}
	return cmd
}

// taken returns the blocks that are not free now.
func taken(blocks []lease.Grant) []lease.Grant {
	return slices.DeleteFunc(slices.Clone(blocks),
		func(b lease.Grant) bool { return b.Free(time.Now()) })
}

func leaseShowCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NODE",
		Short: "Show the block that a node belongs to",
		Long: "show reads the block that a node belongs to, and writes nothing. Its JSON is " +
			"that of \"lease list\".",
		Example: `  traceflake lease show 4711 --store file:/var/lib/traceflake/leases`,
		Args:    cobra.ExactArgs(1),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		node, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil || node > randflake.MaxNode {
			return fmt.Errorf("%q is not a node from 0 to %d", args[0], randflake.MaxNode)
		}
		return f.withStore(cmd, storeTimeout, func(ctx context.Context, s driver.Store) error {
			b, err := blockOf(ctx, s, uint32(node))
			switch {
			case err != nil:
				return err
			case b.Version == 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: node %d was never granted\n", node)
				return errReported
			}
			return writeBlocks(cmd, *output, []lease.Grant{b})
		})
	}
	return cmd
}

// blockOf reads the block that a node belongs to. The result has version 0 if the block was never
// granted, or if the node is not in the store's range.
func blockOf(ctx context.Context, s driver.Store, node uint32) (b lease.Grant, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	d, err := s.Describe(ctx)
	if errors.Is(err, lease.ErrRaising) {
		err = nil
	}
	if err != nil || node < d.First || node-d.First >= d.Nodes {
		return b, err
	}
	return s.Get(ctx, node-node%d.BlockSize)
}

// state describes who has a block at now.
func state(b lease.Grant, now time.Time) string {
	until := rfc3339(b.End)
	switch {
	case b.Version == 0:
		return "never granted"
	case b.Free(now):
		return "free since " + until
	case b.Nonce == "":
		return "raised, free from " + until
	case b.Owner == "": // it was released a moment ago, or its owner is empty
		return "without an owner, free from " + until
	}
	return "held by " + b.Owner + " until " + until
}

func writeBlocks(cmd *cobra.Command, output string, blocks []lease.Grant) error {
	if output == "json" {
		for _, b := range blocks {
			err := show(cmd, output, nil, struct {
				Node    uint32    `json:"node"`
				Nodes   uint32    `json:"nodes"`
				Start   time.Time `json:"start,omitzero"`
				End     time.Time `json:"end,omitzero"`
				Nonce   string    `json:"nonce,omitempty"`
				Owner   string    `json:"owner,omitempty"`
				Version uint64    `json:"version"`
				Free    bool      `json:"free"`
			}{b.Node, b.Nodes, b.Start.UTC(), b.End.UTC(), b.Nonce, b.Owner, b.Version,
				b.Free(time.Now())})
			if err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if len(blocks) > 0 {
		fmt.Fprintln(w, "NODES\tBLOCKS\tSTART\tVERSION\tSTATE")
	}
	for len(blocks) > 0 {
		first, start, n := blocks[0], "-", 1
		for n < len(blocks) && alike(first, blocks[n]) &&
			blocks[n].Node == blocks[n-1].Node+first.Nodes {
			n++
		}
		if !first.Start.IsZero() {
			start = rfc3339(first.Start)
		}
		fmt.Fprintf(w, "%d-%d\t%d\t%s\t%d\t%s\n", first.Node, blocks[n-1].Node+first.Nodes-1, n,
			start, first.Version, state(first, time.Now()))
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
