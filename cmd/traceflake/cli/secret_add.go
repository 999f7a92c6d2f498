package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
)

func leaseSecretCommand(f *commonFlags) *cobra.Command {
	add := &cobra.Command{
		Use:   "add FILE",
		Short: "Register a new secret, to replace the one in use",
		Long: `add writes a new secret to FILE, which must not exist, and registers it with the
store. It changes nothing else: add the secret's line to the secret file of every
process, below the secret in use, and move it to the top when every process has it.

If add is interrupted, run the same command again.`,
		Example: `  traceflake lease secret add next --store postgres://db/traceflake`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.onServer(cmd,
				func(ctx context.Context, s openStore, d lease.Description) error {
					file := args[0]
					secret, err := openSecret(file, d.ID)
					if errors.Is(err, fs.ErrNotExist) { // an interrupted command has not written it
						secret, err = generateSecret(file, d.ID, s)
					}
					if err != nil {
						return err
					}
					fingerprint := d.Fingerprint(secret.codec)
					if secret.temporary == "" && !slices.Contains(d.Secrets, fingerprint) {
						return fmt.Errorf("%s exists, and its secret may belong to another store: "+
							"name a file that does not exist", file)
					}
					if err := s.AddSecret(ctx, d.ID, fingerprint); err != nil {
						return err
					}
					if err := secret.keep(); err != nil {
						return fmt.Errorf("secret: %w; run the same command again", err)
					}
					_, err = fmt.Fprintf(cmd.OutOrStdout(),
						"registered the secret in %s with the store %s\n", file, d.ID)
					return err
				})
		},
	}
	replace := secretReplaceCommand(f)
	return group(&cobra.Command{
		Use:   "secret",
		Short: "Change the secret of a lease store, or replace it after a restore",
		Long: `secret manages the secrets of a lease store: add and remove change the secret of a
store, replace gives a restored store a new one.`,
		Example: add.Example + "\n" + replace.Example,
	}, add, secretListCommand(f), secretRemoveCommand(f), replace)
}
