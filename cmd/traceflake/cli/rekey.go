package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
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
	}
	f.addSecret(cmd)
	cmd.Flags().BoolVar(&stopped, "stopped", false,
		"of a store without a secret: its processes were stopped, and their leases have ended")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.withStore(cmd, func(ctx context.Context, s openStore) error {
			d, err := s.describe(ctx)
			if d.ID == "" || errors.Is(err, lease.ErrNoStore) {
				return err
			}
			if d.Keyless && !stopped {
				return fmt.Errorf("%s has no secret, so numbers of two histories are equal: "+
					"1. stop every process that uses it; 2. wait for %s, and longer than their "+
					"clocks differ; 3. run the same command with --stopped, and start them", s,
					shortly(d.LongestTTL))
			}
			begun, err := rekey(ctx, s, d)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "begun the history %s of %s: all blocks are free, and "+
				"processes switch at their next request\n", begun.ID, s)
			if k, err := s.settings.LoadSecrets(); err == nil && len(k.Codecs()) > 1 {
				fmt.Fprintf(cmd.OutOrStdout(), "of %d secrets it has the first, %s\n",
					len(k.Codecs()), compared(k.Codec(), begun))
			}
			return nil
		})
	}
	return cmd
}

// rekey begins a history after that of d.
func rekey(ctx context.Context, s openStore, d lease.Description) (lease.Description, error) {
	r := lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey, Now: now(), Known: d.Histories()}
	if !d.Keyless {
		k, err := s.settings.LoadSecrets()
		if err != nil {
			return d, err
		}
		r.Secrets, r.Secret = k, k.Codec()
	}
	begun, err := s.Begin(ctx, r)
	if errors.Is(err, lease.ErrHistory) {
		err = wrong("run the same command again to begin another one",
			"somebody else has begun the history %s in the meantime", begun.ID)
	}
	return begun, err
}

// compared compares the secret of a history with that of the one before: an operator who wants to
// change it may have added the new one to the end of the file.
func compared(secret *randflake.Codec, d lease.Description) string {
	if before := d.Histories()[1:]; len(before) > 0 &&
		before[0].Fingerprint(secret) == before[0].Secret {
		return "as the history before: the secret was not changed"
	}
	return "and not that of the history before"
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
	}
	f.addSecret(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.withStore(cmd, func(ctx context.Context, s openStore) error {
			d, k, err := s.secrets(ctx)
			if err != nil {
				return err
			}
			const most = 64 // of a secret file
			for i, h := range d.Histories()[:min(most, 1+len(d.Earlier))] {
				secret, err := h.Find(k)
				switch {
				case err != nil && i == 0:
					return err
				case err == nil:
					fmt.Fprintf(cmd.OutOrStdout(), "# %s: history %s, begun %s, %s\n%x\n", s, h.ID,
						rfc3339(h.Begun), h.Reason, lease.HistoryKey(secret, h.ID))
				}
			}
			return nil
		})
	}
	return cmd
}

// secrets returns the description of a store that has a secret, and the secrets.
func (s openStore) secrets(ctx context.Context) (d lease.Description, k *randflake.Keyring,
	err error) {
	if k, err = s.settings.LoadSecrets(); err != nil {
		return d, nil, err
	}
	d, err = s.describe(ctx)
	if d.ID != "" && !errors.Is(err, lease.ErrNoStore) { // in any other state it has IDs
		err = nil
	}
	if err == nil && d.Keyless {
		err = lease.ErrKeyless
	}
	return d, k, err
}

// keys returns the keys of the store's histories.
func (s openStore) keys(ctx context.Context) (*randflake.Keyring, error) {
	d, k, err := s.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return fleet.Keys(k, d), nil
}
