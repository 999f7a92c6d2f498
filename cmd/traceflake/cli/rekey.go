package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
)

func leaseRekeyCommand(f *commonFlags) *cobra.Command {
	var stopped bool
	cmd := &cobra.Command{
		Use:   "rekey",
		Short: "Begin a history of the store, also with another secret",
		Long: `rekey begins a history of the store, in which no block was ever granted, under the
first secret of FILE. Each history has its own key, derived from the secret. Processes
switch at their next request, without a restart; leases of the earlier history are used
to their ends.

Processes begin histories by themselves when the store has moved or forgotten a lease.
Run rekey after a restore that they cannot notice before they reach the store, and to
change the secret: add the new secret to the secret file of every process first.

If rekey fails or is interrupted, run it again. It is safe at any time, except for a
store without a secret: then rekey prints what has to be stopped before.`,
		Example: `  traceflake lease rekey --store postgres://db/traceflake --secret-file secret`,
		RunE: f.withStore(func(ctx context.Context, cmd *cobra.Command, s openStore) error {
			return s.rekey(ctx, cmd, stopped)
		}),
	}
	f.addSecret(cmd)
	cmd.Flags().BoolVar(&stopped, "stopped", false,
		"of a store without a secret: its processes were stopped, and their leases have ended")
	return cmd
}

// rekey begins a history.
func (s openStore) rekey(ctx context.Context, cmd *cobra.Command, stopped bool) error {
	d, err := s.describe(ctx)
	if err != nil {
		return err
	}
	r := lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey, Now: now(), Known: d.Histories()}
	secret := "no"
	switch {
	case d.Keyless && !stopped:
		return withFix("1. stop every process that uses it; 2. wait for "+shortly(d.LongestTTL)+
			", and longer than their clocks differ; 3. run the same command with --stopped, and "+
			"start them",
			"%s has no secret, so numbers of two histories are equal", s)
	case !d.Keyless:
		if r.Secrets, err = s.settings.LoadSecrets(); err != nil {
			return err
		}
		r.Secret, secret = r.Secrets.Codec(), "the same"
		if d.Fingerprint(r.Secret) != d.Secret {
			secret = "another"
		}
	}
	begun, err := s.Begin(ctx, r)
	if errors.Is(err, lease.ErrHistory) { // somebody else has begun one in the meantime
		err = withFix("run the same command again to begin another one", "%w", err)
	}
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "begun the history %s of %s, under %s secret: all blocks "+
			"are free, and processes switch at their next request\n", begun.ID, s, secret)
	}
	return err
}

func leaseKeysCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Print the keys of the store's histories, for verifiers without the store",
		Long: `keys prints the keys of the store's histories, the present one first, in the form of
a secret file: processes and commands that cannot reach the store verify and decode IDs
with it. The secret cannot be computed from the keys. Print them again when a history
has begun.`,
		Example: `  traceflake lease keys --store postgres://db/traceflake --secret-file secret`,
		RunE: f.withStore(func(ctx context.Context, cmd *cobra.Command, s openStore) error {
			d, k, err := s.histories(ctx)
			if err != nil {
				return err
			}
			const most = 64 // of a secret file
			for i, h := range d.Histories()[:min(most, 1+len(d.Earlier))] {
				secret, err := h.Find(k)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "# %s: history %s, begun %s, %s\n%x\n", s, h.ID,
						rfc3339(h.Begun), h.Reason, lease.HistoryKey(secret, h.ID))
				} else if i == 0 {
					return err
				}
			}
			return nil
		}),
	}
	f.addSecret(cmd)
	return cmd
}
