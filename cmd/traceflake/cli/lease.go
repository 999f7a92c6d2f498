package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

func leaseCommand(f *commonFlags) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "lease",
		Short: "Create a lease store, list its leases, change its key",
		Long: `lease manages the store from which processes lease nodes. An operator creates the
store once, with lease create; no other command creates it.`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease list --store file:/var/lib/traceflake/leases
  traceflake lease rekey --store postgres://db/traceflake --secret-file secret`,
	}, leaseCreateCommand(f), leaseListCommand(f), leaseRekeyCommand(f), leaseKeysCommand(f))
	f.addStore(cmd.PersistentFlags(), "store of the leases")
	return cmd
}

func leaseListCommand(f *commonFlags) *cobra.Command {
	var held bool
	var node uint32
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the histories, the granted blocks and their owners",
		Long: `list shows the histories of the store, the present one first, and the blocks of nodes
that were ever granted in the present one: to which process, from when and until when,
and how many are taken now. It writes nothing. With --held or --node it shows no
histories; with --node the exit code is 1 if the node was never granted.

A lease of a process whose clock was more than a minute behind the store's is held
until its end on that clock, and marked. etcd has no clock.

With -o json each history and each block is an object on a line of its own:
{"history":"0b5c…f1","begun":"…","reason":"moved"}
{"node":64,"nodes":8,"start":"…","end":"…","nonce":"…","owner":"…","version":3,
"free":false}, and for such a clock "secondsBehind":7200`,
		Example: `  traceflake lease list --held --store file:/var/lib/traceflake/leases
  traceflake lease list --node 4711 --store file:/var/lib/traceflake/leases
  traceflake lease list --store etcd://host:2379/leases -o json`,
	}
	output := outputFlag(cmd)
	cmd.Flags().BoolVar(&held, "held", false, "only blocks that are taken now")
	cmd.Flags().Uint32Var(&node, "node", 0, "only the block that this node belongs to")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.withStore(cmd, func(ctx context.Context, s openStore) error {
			d, err := s.describe(ctx)
			if err != nil {
				return err
			}
			blocks, err := s.List(ctx)
			if err != nil {
				return err
			}
			at := storeTime(ctx, s)
			fmt.Fprintf(cmd.ErrOrStderr(),
				"traceflake: %d of %d blocks are taken; %d were ever granted\n",
				len(taken(blocks, at)), d.Blocks(), len(blocks))
			if cmd.Flags().Changed("node") {
				blocks = slices.DeleteFunc(blocks,
					func(b lease.Grant) bool { return node < b.Node || node-b.Node >= b.Nodes })
				if len(blocks) == 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "traceflake: node %d was never granted\n", node)
					return errReported
				}
			}
			if held {
				blocks = taken(blocks, at)
			} else if !cmd.Flags().Changed("node") {
				err = writeHistories(cmd, *output, d)
			}
			if err != nil {
				return err
			}
			return writeBlocks(cmd, *output, blocks, at)
		})
	}
	return cmd
}

// storeTime returns the time on the store's clock: this machine's may be wrong. If the store has
// none or does not answer, it returns this machine's time.
func storeTime(ctx context.Context, s stores.Store) time.Time {
	if at, err := s.Time(ctx); err == nil && !at.IsZero() {
		return at
	}
	return now()
}

// taken returns the blocks that are not free at a time.
func taken(blocks []lease.Grant, at time.Time) []lease.Grant {
	return slices.DeleteFunc(slices.Clone(blocks),
		func(b lease.Grant) bool { return free(b, at) })
}

// free reports whether nobody uses the block at now, also if its holder's clock is behind.
func free(b lease.Grant, now time.Time) bool { return b.Free(now.Add(-b.Behind)) }

// state describes who has a block at now.
func state(b lease.Grant, now time.Time) string {
	until := rfc3339(b.End)
	if free(b, now) {
		return "free since " + until
	}
	held := "held by " + cmp.Or(b.Owner, "a process without a name") + " until " + until
	if b.Behind > 0 {
		held += " on its clock, which is " + shortly(b.Behind) + " behind the store's"
	}
	return held
}

// writeHistories writes a line for each history.
func writeHistories(cmd *cobra.Command, output string, d lease.Description) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if output == "text" {
		fmt.Fprintln(w, "HISTORY\tBEGUN\tREASON")
	}
	for _, h := range d.Histories() {
		if err := show(w, output, func() string {
			return fmt.Sprintf("%s\t%s\t%s\n", h.ID, rfc3339(h.Begun), h.Reason)
		}, struct {
			ID     string    `json:"history"`
			Begun  time.Time `json:"begun"`
			Reason string    `json:"reason"`
		}{h.ID, h.Begun.UTC(), h.Reason}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// writeBlocks writes a line for each block.
func writeBlocks(cmd *cobra.Command, output string, blocks []lease.Grant, at time.Time) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if output == "text" && len(blocks) > 0 {
		fmt.Fprintln(w, "NODES\tSTART\tVERSION\tSTATE")
	}
	for _, b := range blocks {
		if err := show(w, output, func() string {
			return fmt.Sprintf("%d-%d\t%s\t%d\t%s\n", b.Node, b.Node+b.Nodes-1, rfc3339(b.Start),
				b.Version, state(b, at))
		}, struct {
			Node    uint32    `json:"node"`
			Nodes   uint32    `json:"nodes"`
			Start   time.Time `json:"start,omitzero"`
			End     time.Time `json:"end,omitzero"`
			Nonce   string    `json:"nonce,omitempty"`
			Owner   string    `json:"owner,omitempty"`
			Version uint64    `json:"version"`
			Free    bool      `json:"free"`
			Behind  float64   `json:"secondsBehind,omitempty"`
		}{b.Node, b.Nodes, b.Start.UTC(), b.End.UTC(), b.Nonce, b.Owner, b.Version,
			free(b, at), b.Behind.Seconds()}); err != nil {
			return err
		}
	}
	return w.Flush()
}
