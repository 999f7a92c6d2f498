package cli

import (
	"context"
	"fmt"
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
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the histories, the granted blocks and their owners",
		Long: `list shows the histories of the store, the present one first, and the blocks of nodes
that were ever granted in the present one: to which process, from when and until when.
It writes nothing. With --held it shows the blocks that are taken now, and no histories.

A lease of a process whose clock was more than a minute behind the store's is held
until its end on that clock, and marked. etcd has no clock.

With -o json each history and each block is an object on a line of its own:
{"begun":"…","history":"0b5c…f1","reason":"moved"}
{"end":"…","free":false,"node":64,"nodes":8,"nonce":"…","owner":"…",
"secondsBehind":0,"start":"…","version":3}`,
		Example: `  traceflake lease list --held --store file:/var/lib/traceflake/leases
  traceflake lease list --store etcd://host:2379/leases -o json`,
	}
	output := outputFlag(cmd)
	cmd.Flags().BoolVar(&held, "held", false, "only blocks that are taken now")
	cmd.RunE = f.withStore(func(ctx context.Context, cmd *cobra.Command, s openStore) error {
		d, err := s.describe(ctx)
		if err != nil {
			return err
		}
		blocks, err := s.List(ctx)
		if err != nil {
			return err
		}
		at := storeTime(ctx, s)
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		line := func(record map[string]any, format string, values ...any) {
			if *output == "text" || record != nil {
				_ = show(w, *output, fmt.Sprintf(format, values...), record) // see flush
			}
		}
		if !held {
			line(nil, "HISTORY\tBEGUN\tREASON\n")
			for _, h := range d.Histories() {
				line(map[string]any{"history": h.ID, "begun": h.Begun.UTC(), "reason": h.Reason},
					"%s\t%s\t%s\n", h.ID, rfc3339(h.Begun), h.Reason)
			}
			line(nil, "\n")
		}
		line(nil, "NODES\tSTART\tVERSION\tSTATE\n")
		for _, b := range blocks {
			if held && free(b, at) {
				continue
			}
			line(map[string]any{"node": b.Node, "nodes": b.Nodes, "start": b.Start.UTC(),
				"end": b.End.UTC(), "nonce": b.Nonce, "owner": b.Owner, "version": b.Version,
				"free": free(b, at), "secondsBehind": b.Behind.Seconds()},
				"%d-%d\t%s\t%d\t%s\n", b.Node, b.Node+b.Nodes-1, rfc3339(b.Start), b.Version,
				state(b, at))
		}
		return w.Flush()
	})
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

// free reports whether nobody uses the block at now, also if its holder's clock is behind.
func free(b lease.Grant, now time.Time) bool { return b.Free(now.Add(-b.Behind)) }

// state describes who has a block at now.
func state(b lease.Grant, now time.Time) string {
	until := rfc3339(b.End)
	if free(b, now) {
		return "free since " + until
	}
	held := "held by " + b.Owner + " until " + until
	if b.Behind > 0 {
		held += " on its clock, which is " + shortly(b.Behind) + " behind the store's"
	}
	return held
}
