package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// registration is a secret that is registered with a store.
type registration struct {
	Fingerprint string `json:"fingerprint"`
	// Line is the number of the secret in the secret file, from 1 for the one in use, or 0.
	Line int `json:"line"`
}

// text is a registration as a line of text.
func (r registration) text() string {
	where := "not in the secret file"
	switch {
	case r.Line == 1:
		where = "in use: the first of the secret file"
	case r.Line > 1:
		where = fmt.Sprintf("number %d of the secret file", r.Line)
	}
	return fmt.Sprintf("%s  %s\n", r.Fingerprint, where)
}

// registrations returns the secrets of a store, the oldest first.
func registrations(d lease.Description, k *randflake.Keyring) (all []registration) {
	for _, fingerprint := range d.Secrets {
		line := 1 + slices.IndexFunc(k.Codecs(), func(c *randflake.Codec) bool {
			return d.Fingerprint(c) == fingerprint
		})
		all = append(all, registration{fingerprint, line})
	}
	return all
}

func secretListCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the registered secrets, the newest last",
		Long: `list shows the fingerprint of each secret with which a process gets leases from the
store, and where the secret is in the secret file. It writes nothing.

With -o json each secret is an object on a line of its own, where line is its number
in the secret file or 0: {"fingerprint":"0b5c4e1f9d8a7b6c","line":1}`,
		Example: "  traceflake lease secret list --store postgres://db/traceflake " +
			"--secret-file secret",
	}
	f.addSecret(cmd)
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return f.withSecrets(cmd, func(_ context.Context, _ stores.Store, d lease.Description,
			all []registration) error {
			for _, r := range all {
				if err := show(cmd, *output, r.text, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// withSecrets is withDescription for calls that need the registered secrets of a server's store.
func (f *commonFlags) withSecrets(cmd *cobra.Command, call func(context.Context, stores.Store,
	lease.Description, []registration) error) error {
	k, err := f.keyring()
	if err != nil {
		return err
	}
	return f.withDescription(cmd, pagesTimeout,
		func(ctx context.Context, s stores.Store, d lease.Description) error {
			if s.KeepsSecret() {
				return errOneSecret
			}
			return call(ctx, s, d, registrations(d, k))
		})
}

var errOneSecret = errors.New("a lease directory keeps one secret: to change it, run traceflake " +
	"lease secret replace")

func secretRemoveCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove FINGERPRINT",
		Short: "End the registration of an old secret",
		Long: `remove ends the registration of the secret with FINGERPRINT, which list shows: no
process gets or renews a lease with it any more. Current leases are used to their
ends. A process whose secret was removed reports it, and generates random IDs until
its secret file begins with a registered secret; it needs no restart.

If remove is interrupted, run the same command again.`,
		Example: "  traceflake lease secret remove 0b5c4e1f9d8a7b6c " +
			"--store postgres://db/traceflake",
		Args: cobra.ExactArgs(1),
	}
	f.addSecret(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.withSecrets(cmd, func(ctx context.Context, s stores.Store, d lease.Description,
			all []registration) error {
			if slices.Contains(all, registration{args[0], 1}) {
				return fmt.Errorf("%s is the first secret of the secret file: put a newer one "+
					"above it in the file of every process first", args[0])
			}
			if err := s.RemoveSecret(ctx, d.ID, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed the secret %s of the store %s: "+
				"leases with it end within %s\n", args[0], d.ID, shortly(d.LongestTTL))
			return err
		})
	}
	return cmd
}
