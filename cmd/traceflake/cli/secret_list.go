package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
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

// lineOf returns the number of a secret in the secret file, from 1, or 0 if it is not there.
func lineOf(fingerprint string, d lease.Description, k *randflake.Keyring) int {
	return 1 + slices.IndexFunc(k.Codecs(), func(c *randflake.Codec) bool {
		return d.Fingerprint(c) == fingerprint
	})
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
		k, err := f.keyring()
		if err != nil {
			return err
		}
		return f.onServer(cmd, func(_ context.Context, _ openStore, d lease.Description) error {
			for _, fingerprint := range d.Secrets {
				r := registration{fingerprint, lineOf(fingerprint, d, k)}
				if err := show(cmd.OutOrStdout(), *output, r.text, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// onServer is withStore for calls that need the description of a server's store, whose secrets are
// in files.
func (f *commonFlags) onServer(cmd *cobra.Command,
	call func(context.Context, openStore, lease.Description) error) error {
	return f.withStore(cmd, func(ctx context.Context, s openStore) error {
		d, err := s.describe(ctx)
		switch {
		case err != nil:
			return err
		case s.KeepsSecret():
			return errOneSecret
		}
		return call(ctx, s, d)
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
		k, err := f.keyring()
		if err != nil {
			return err
		}
		return f.onServer(cmd, func(ctx context.Context, s openStore, d lease.Description) error {
			if lineOf(args[0], d, k) == 1 {
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
