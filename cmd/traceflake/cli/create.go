package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// creation is the command `lease create` with its flags.
type creation struct {
	*flags
	nodes    string
	existing bool // secret
	asked    lease.Description
}

func leaseCreateCommand(f *flags) *cobra.Command {
	c := &creation{flags: f}
	cmd := &cobra.Command{
		Use:   "create --store URL --secret-file FILE",
		Short: "Create a lease store and its secret, once",
		Long: `create tests the server, creates a lease store, and writes its new secret to FILE,
which must not exist, with mode 0600. Give the file and the URL to every process. If
create is interrupted, run the same command again. If the store exists and FILE has
its secret, create changes nothing; flags that differ from the store are refused.

--existing-secret uses the secret in FILE, and grants nothing until every lease of
another store under that secret is over, which takes 24 hours. With --nodes it grants
at once: choose nodes that no other store under that secret has ever had.

A lease directory (file:DIR) has a secret of its own, and the first process that
uses it creates it:
create is only needed for another block size or a longer TTL.`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease create --store etcd://host:2379 --secret-file secret --existing-secret --nodes 65536+65536`,
		RunE: c.run,
	}
	f.addSecret(cmd)
	cmd.Flags().StringVar(&c.nodes, "nodes", "", "nodes of the store, FIRST+COUNT (default all, 0+131072)")
	cmd.Flags().Uint32Var(&c.asked.BlockSize, "block-size", driver.DefaultBlockSize, "nodes in a block, a power of two; a process leases one block at a time")
	durationFlag(cmd, &c.asked.LongestTTL, "longest-ttl", lease.DefaultTTL, "longest lease; after a restore from a backup nothing is granted for as long")
	cmd.Flags().BoolVar(&c.existing, "existing-secret", false, "use the secret in the file, which another store may have")
	return cmd
}

func (c *creation) run(cmd *cobra.Command, _ []string) error {
	var rest string
	if n, _ := fmt.Sscanf(c.nodes, "%d+%d%s", &c.asked.First, &c.asked.Nodes, &rest); c.nodes != "" && (n != 2 || c.asked.Nodes == 0) {
		return fmt.Errorf("--nodes: %q is not FIRST+COUNT, such as 0+1024", c.nodes)
	}
	return c.withStore(cmd, raiseTimeout, func(ctx context.Context, s driver.Store) error {
		return c.create(ctx, cmd, s)
	})
}

// check refuses settings that contradict the kind of store.
func (c *creation) check(settings setup.Config, embedded bool) error {
	switch {
	case embedded && settings.SecretFile != "":
		return fmt.Errorf("%s has a secret of its own: leave out --secret-file and TRACEFLAKE_SECRET_FILE", settings.Address())
	case embedded && c.existing:
		return fmt.Errorf("%s has a secret of its own: leave out --existing-secret", settings.Address())
	case !embedded && settings.SecretFile == "":
		return errors.New("no secret file: name the file to which the new secret is written, with --secret-file or TRACEFLAKE_SECRET_FILE")
	}
	return nil
}

// differs returns an error if flags of the command line say something else than the store.
func (c *creation) differs(cmd *cobra.Command, d lease.Description) error {
	for _, flag := range []struct {
		name string
		same bool
	}{
		{"nodes", c.asked.First == d.First && c.asked.Nodes == d.Nodes},
		{"block-size", c.asked.BlockSize == d.BlockSize},
		{"longest-ttl", c.asked.LongestTTL == d.LongestTTL},
	} {
		if given := cmd.Flags().Lookup(flag.name); given.Changed && !flag.same {
			return fmt.Errorf("%w, with %s: --%s=%s cannot change that; leave it out, or create another store elsewhere",
				lease.ErrExists, summary(d), flag.name, given.Value)
		}
	}
	return nil
}

// create creates the store, or completes it, or finds that it exists.
func (c *creation) create(ctx context.Context, cmd *cobra.Command, s driver.Store) error {
	settings, err := c.config()
	_, embedded := s.(driver.Embedded)
	if err == nil {
		err = c.check(settings, embedded)
	}
	if err != nil {
		return err
	}
	d, err := s.Describe(ctx)
	there := err == nil || d.ID != "" // perhaps unfinished
	if !there && !errors.Is(err, lease.ErrNoStore) {
		return err
	}
	var secret *secretFile
	if !embedded {
		if secret, err = secretOf(settings.SecretFile, d, there); err != nil {
			return err
		}
	}
	verb := "the store exists:"
	if there {
		err = c.differs(cmd, d)
	} else {
		verb = "created"
		d, err = describe(ctx, s, c.asked, secret, c.existing)
	}
	if err != nil {
		return err
	}
	if !there || !embedded {
		if err := s.Create(ctx, d); err != nil {
			return err
		}
	}
	if err := secret.keep(); err != nil {
		return fmt.Errorf("secret: the store was created, but: %w; run the same command again", err)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s %s: ID %s, %s\n", verb, settings.Address(), d.ID, summary(d))
	if d.Raised.After(now()) {
		fmt.Fprintf(out, "it grants nothing before %s, when the leases of other stores under this secret are over\n", rfc3339(d.Raised))
	}
	if !embedded {
		fmt.Fprintf(out, "for every process: its URL of the store in TRACEFLAKE_STORE, with its own user and password; "+
			"in TRACEFLAKE_SECRET_FILE a copy of %s\n", settings.SecretFile)
	}
	return nil
}

// secretOf opens the secret file of a store that is there, or of a new one.
func secretOf(path string, d lease.Description, there bool) (*secretFile, error) {
	secret, err := openSecret(path, !there)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && (!there || !missing):
		return nil, fmt.Errorf("secret: %w", err)
	case there && (missing || !slices.Contains(d.Secrets, lease.Fingerprint(secret.codec, d.ID))):
		return nil, fmt.Errorf("%w, with the ID %s, created at %s; its secret is not in %s: "+
			"give the secret file of that store, or create another one elsewhere", lease.ErrExists, d.ID, rfc3339(d.Created), path)
	}
	return secret, nil
}

// summary describes what a store grants.
func summary(d lease.Description) string {
	return fmt.Sprintf("nodes %d to %d in blocks of %d, leases of up to %s", d.First, d.First+d.Nodes-1, d.BlockSize, shortly(d.LongestTTL))
}

// describe returns the description of a new store.
func describe(ctx context.Context, s driver.Store, d lease.Description, secret *secretFile, existing bool) (lease.Description, error) {
	if secret != nil && !secret.fresh && !existing {
		return d, fmt.Errorf("%s exists, and a new store needs a new secret: name a file that does not exist, or see --existing-secret in "+
			"`traceflake lease create --help`", secret.path)
	}
	d.Created = now()
	d, err := driver.NewDescription(d)
	if secret == nil || err != nil {
		return d, err
	}
	d.Secrets = []string{lease.Fingerprint(secret.codec, d.ID)}
	if apart := d.Nodes < driver.AllNodes.Nodes; secret.fresh || apart {
		return d, nil
	}
	at, _, err := storeTime(ctx, s)
	d.Raised = driver.AfterLeases(at, lease.MaxTTL)
	return d, err
}

// secretFile is a file with a secret, nil for a store that has its own. A new secret is written to a file with another name first, and
// gets its own name when the store has it: a command that was interrupted finds it there.
type secretFile struct {
	path  string
	codec *randflake.Codec
	fresh bool // under the other name
}

const unfinished = ".unfinished"

// openSecret reads a secret, or writes a new one if there is none and it may.
func openSecret(path string, mayCreate bool) (*secretFile, error) {
	k, err := setup.LoadKeyring(path)
	if !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, err
		}
		return &secretFile{path: path, codec: k.Codec()}, nil
	}
	if mayCreate {
		if err := writeSecret(path + unfinished); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	if k, err = setup.LoadKeyring(path + unfinished); err != nil {
		return nil, err
	}
	return &secretFile{path: path, codec: k.Codec(), fresh: true}, nil
}

// keep gives a new secret its name.
func (s *secretFile) keep() error {
	if s == nil || !s.fresh {
		return nil
	}
	if err := os.Link(s.path+unfinished, s.path); err != nil { // unlike Rename it replaces no file
		return err
	}
	return os.Remove(s.path + unfinished)
}

// writeSecret writes a new secret to a file that does not exist.
func writeSecret(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	var secret [16]byte
	entropy.Read(secret[:])
	_, err = file.WriteString(hex.EncodeToString(secret[:]) + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

func leaseSecretCommand(f *flags) *cobra.Command {
	add := &cobra.Command{
		Use:   "add FILE",
		Short: "Register a new secret, to replace the one in use",
		Long: `add writes a new secret to FILE, which must not exist, and registers it with the
store. Nothing else changes: add its line to the secret file of every process, below
the one in use, and move it to the top when all of them have it.

If add is interrupted, run the same command again.`,
		Example: `  traceflake lease secret add next --store postgres://db/traceflake`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withDescription(cmd, storeTimeout, func(ctx context.Context, s driver.Store, d lease.Description) error {
				if _, embedded := s.(driver.Embedded); embedded {
					return errors.New("a lease directory has one secret, which never changes: move the directory away, and a service creates another one")
				}
				secret, err := openSecret(args[0], true)
				if err != nil {
					return fmt.Errorf("secret: %w", err)
				}
				fingerprint := lease.Fingerprint(secret.codec, d.ID)
				if !secret.fresh && !slices.Contains(d.Secrets, fingerprint) {
					return fmt.Errorf("%s exists, and its secret may belong to another store: name a file that does not exist", args[0])
				}
				if err := s.AddSecret(ctx, fingerprint); err != nil {
					return err
				}
				if err := secret.keep(); err != nil {
					return fmt.Errorf("secret: %w; run the same command again", err)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "registered the secret in %s with the store %s\n", args[0], d.ID)
				return err
			})
		},
	}
	return group(&cobra.Command{
		Use:     "secret",
		Short:   "Register a secret with a lease store",
		Long:    "secret manages the secrets of a lease store.",
		Example: add.Example,
	}, add)
}
