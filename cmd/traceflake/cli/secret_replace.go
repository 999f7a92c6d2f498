package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
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
		env, err := f.config()
		if err != nil {
			return err
		}
		return f.withStore(cmd, pagesTimeout, func(ctx context.Context, s stores.Store) error {
			d, err := describe(ctx, s)
			switch {
			case d.ID == "":
				return err
			case len(args) == 0:
				return fmt.Errorf("the store has the ID %s: if it was restored, moved or copied, "+
					"and no process can reach it, run the same command with this ID", d.ID)
			}
			id, err := replaceSecret(ctx, s, d, err, args[0], env)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "replaced the secret of %s: its ID is %s, "+
				"and all blocks are free\n", redact.Address(env.Store), id)
			return err
		})
	}
	return cmd
}

// replaceSecret gives the store with the ID old a new secret, and returns its new ID. d and state
// are what Describe returned.
func replaceSecret(ctx context.Context, s stores.Store, d lease.Description, state error,
	old string, env fleet.Config) (id string, err error) {
	if s.KeepsSecret() {
		if err := s.Replace(ctx, old, lease.NewNonce(), ""); err != nil {
			return "", err
		}
		d, err = describe(ctx, s)
		return d.ID, err
	}
	if env.SecretFile == "" {
		return "", errNoSecret
	}
	info, err := os.Stat(env.SecretFile)
	if err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file: replace writes the new secret into it",
			env.SecretFile)
	}
	begun := d.Replaced == old && d.ID != old
	secret, err := openTemporary(env.SecretFile, d.ID)
	if !begun || errors.Is(err, fs.ErrNotExist) {
		k, err := fleet.LoadKeyring(env.SecretFile)
		if err != nil {
			return "", fmt.Errorf("secret: %w", err)
		}
		registered := slices.ContainsFunc(k.Codecs(), func(c *randflake.Codec) bool {
			return slices.Contains(d.Secrets, d.Fingerprint(c))
		})
		switch {
		case begun && registered:
			return d.ID, repeated(ctx, s, d)
		// Nobody uses the secret of a store that is being replaced, and it may be lost.
		case d.ID == old && !registered && !errors.Is(state, lease.ErrReplacing):
			return "", fmt.Errorf("%s: %w", env.SecretFile, lease.ErrWrongSecret)
		}
		secret, err = generateSecret(env.SecretFile, lease.NewNonce(), "replaces "+old)
		if err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	fingerprint := lease.Description{ID: secret.id}.Fingerprint(secret.codec)
	err = s.Replace(ctx, old, secret.id, fingerprint)
	switch {
	case errors.Is(err, lease.ErrReplaced): // no process ever had this secret
		return "", errors.Join(err, secret.discard())
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
func repeated(ctx context.Context, s stores.Store, d lease.Description) error {
	_, err := describe(ctx, s)
	if errors.Is(err, lease.ErrReplacing) {
		return &lease.Error{
			Err: fmt.Errorf("%w: its secret was in use, so the store was restored since", err),
			Fix: "replace its present ID, " + d.ID,
		}
	}
	return err
}

// keepAbove gives a new secret the name of the secret file, above the lines that the file has now.
// If it is interrupted, it can be repeated.
func (s *secretFile) keepAbove() error {
	text, err := os.ReadFile(s.temporary)
	if err != nil {
		return err
	}
	now, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	lines := strings.SplitAfterN(string(text), "\n", 3) // the first two are new
	above := s.temporary + ".above"
	_ = os.Remove(above) // of an interrupted command
	if err := writeNew(above, lines[0]+lines[1]+string(now)); err != nil {
		return err
	}
	if err := os.Rename(above, s.temporary); err != nil {
		return err
	}
	return os.Rename(s.temporary, s.path)
}
