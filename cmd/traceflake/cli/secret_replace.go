package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
)

func secretReplaceCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replace ID",
		Short: "After a restore or a move, give the store a new secret",
		Long: `replace is for a store that was restored from a backup, moved or copied. Such a store
may have forgotten leases, or the original may grant the same nodes. With a new
secret, equal IDs are as unlikely as equal random numbers, whatever was forgotten.

ID is the ID that the store has after the restore: without it, replace shows the ID.
No process may reach the store between the restore and the end of replace; a store in
another place refuses processes by itself. The store gets another ID and no leases.
The new secret becomes the first line of FILE, above the old ones, which verify old
IDs. Copy FILE to where the processes read it: they need no restart. Current leases
are used to their ends. A lease directory keeps its new secret itself.

If replace fails or is interrupted, run the same command again. If two operators run
it, one secret is introduced, and the other command completes it or is refused.`,
		Example: `  traceflake lease secret replace --store postgres://db/traceflake
  traceflake lease secret replace 0b5c…f1 --store postgres://db/traceflake --secret-file FILE`,
		Args: cobra.MaximumNArgs(1),
	}
	f.addSecret(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.withStore(cmd, func(ctx context.Context, s openStore) error {
			d, err := s.describe(ctx)
			switch {
			case d.ID == "":
				return err
			case len(args) == 0:
				return fmt.Errorf("the store has the ID %s: if it was restored, moved or copied, "+
					"and no process can reach it, run the same command with this ID", d.ID)
			}
			id, err := replaceSecret(ctx, s, d, err, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "replaced the secret of %s: its ID is %s, "+
				"and all blocks are free\n", s, id)
			return err
		})
	}
	return cmd
}

// replaceSecret gives the store with the ID old a new secret, and returns its new ID. d and state
// are what Describe returned.
func replaceSecret(ctx context.Context, s openStore, d lease.Description, state error,
	old string) (id string, err error) {
	if s.KeepsSecret() {
		if err := s.Replace(ctx, old, lease.NewNonce(), ""); err != nil {
			return "", err
		}
		d, err = s.describe(ctx)
		return d.ID, err
	}
	file := s.settings.SecretFile
	if file == "" {
		return "", errNoSecret
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file: replace writes the new secret into it",
			file)
	}
	begun := d.Replaced == old && d.ID != old
	secret, err := openTemporary(file, d.ID)
	if !begun || errors.Is(err, fs.ErrNotExist) {
		k, err := fleet.LoadKeyring(file)
		if err != nil {
			return "", fmt.Errorf("secret: %w", err)
		}
		registered := slices.ContainsFunc(d.Secrets, func(fingerprint string) bool {
			return lineOf(fingerprint, d, k) > 0
		})
		switch {
		case begun && registered:
			return d.ID, repeated(ctx, s, d)
		// Nobody uses the secret of a store that is being replaced, and it may be lost.
		case d.ID == old && !registered && !errors.Is(state, lease.ErrReplacing):
			return "", fmt.Errorf("%s: %w", file, lease.ErrWrongSecret)
		}
		if secret, err = generateSecret(file, lease.NewNonce(), s); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	fingerprint := lease.Description{ID: secret.id}.Fingerprint(secret.codec)
	err = s.Replace(ctx, old, secret.id, fingerprint)
	switch {
	case errors.Is(err, lease.ErrReplaced): // no process ever had this secret
		return "", errors.Join(err, os.Remove(secret.temporary))
	case err != nil:
		return "", fmt.Errorf("%w; run the same command again", err)
	}
	if err := secret.keepAbove(); err != nil {
		return "", fmt.Errorf("secret: the store has its new secret, but: %w; run the same "+
			"command again", err)
	}
	return secret.id, nil
}

// repeated is the end of a command whose secret is in the secret file already. The store was
// complete before the file was renamed. If it is not complete now, it was set back, and processes
// may have used the secret: its history must not begin again.
func repeated(ctx context.Context, s openStore, d lease.Description) error {
	_, err := s.describe(ctx)
	if errors.Is(err, lease.ErrReplacing) {
		return wrong("replace its present ID, "+d.ID,
			"%w: its secret was in use, so the store was restored since", err)
	}
	return err
}
