package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/randflake"
)

// creation is the command `lease create` with its flags.
type creation struct {
	cmd   *cobra.Command
	asked lease.Description
}

func leaseCreateCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --store URL --secret-file FILE",
		Short: "Create a lease store, once",
		Long: `create tests the server and creates a lease store. If FILE does not exist, create
writes a new secret there, with mode 0600. Give the secret and the URL to every
process. One secret serves any number of stores. If create is interrupted, run the same
command again. If the store exists, create changes nothing; flags that differ from the
store are refused.

The first process creates a lease directory (file:DIR), with the secret DIR/secret: run
create only to set another block size or a shorter longest TTL.

A store for other generators, such as Snowflakes, has no secret (--without-secret).`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease create --store etcd://host:2379 --secret-file secret --block-size 32
  traceflake lease create --store s3://bucket --without-secret --nodes 0+1024 --block-size 1`,
	}
	c := creation{cmd: cmd}
	cmd.RunE = func(*cobra.Command, []string) error { return f.withStore(cmd, c.run) }
	f.addSecret(cmd)
	cmd.Flags().BoolVar(&c.asked.Keyless, "without-secret", false,
		"create a store for other generators")
	cmd.Flags().Func("nodes", "nodes of the store, FIRST+COUNT (default all, 0+131072)",
		func(text string) error {
			var rest string
			n, _ := fmt.Sscanf(text, "%d+%d%s", &c.asked.First, &c.asked.Nodes, &rest)
			if n != 2 || c.asked.Nodes == 0 {
				return errors.New("it is not FIRST+COUNT, such as 0+1024")
			}
			return nil
		})
	cmd.Flags().Uint32Var(&c.asked.BlockSize, "block-size", 8,
		"nodes in a block, a power of two; a process leases one block at a time")
	durationFlag(cmd, &c.asked.LongestTTL, "longest-ttl", 0,
		"longest lease (default "+shortly(lease.DefaultTTL)+", in a lease directory "+
			shortly(lease.MaxTTL)+")")
	return cmd
}

// run creates the store, or finds that it exists.
func (c *creation) run(ctx context.Context, s openStore) error {
	d, err := s.describe(ctx)
	verb := "created"
	if errors.Is(err, lease.ErrNoStore) {
		d, err = c.create(ctx, s)
	} else if d.ID != "" { // in any state
		verb, err = "the store exists:", nil
	}
	if errors.Is(err, lease.ErrExists) { // somebody else created it meanwhile
		verb, err = "the store exists:", nil
	}
	if err == nil {
		err = c.compare(s, d)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.cmd.OutOrStdout(), "%s %s: history %s, %s\n", verb, s, d.ID, summary(d))
	if file := s.settings.SecretFile; file != "" && !d.Keyless {
		fmt.Fprintf(c.cmd.OutOrStdout(), "for every process: TRACEFLAKE_STORE is the URL of the "+
			"store, with its own user and password; TRACEFLAKE_SECRET_FILE is the path of a copy "+
			"of %s\n", file)
	}
	return nil
}

// create creates the store, and its secret unless that exists.
func (c *creation) create(ctx context.Context, s openStore) (lease.Description, error) {
	d := c.asked
	if s.directory() { // as if a process created it
		d.LongestTTL = cmp.Or(d.LongestTTL, lease.MaxTTL)
	}
	var secret *randflake.Codec
	if !d.Keyless {
		k, err := s.createSecret(ctx)
		if err != nil {
			return d, err
		}
		secret = k.Codec()
	}
	return s.Create(ctx, d, secret)
}

// createSecret returns the secrets of the settings. If the secret file does not exist, it is
// created with a new secret: under a temporary name, so that it is never incomplete.
func (s openStore) createSecret(ctx context.Context) (*randflake.Keyring, error) {
	c := s.settings
	if s.directory() && c.SecretFile == "" && c.Secrets == nil {
		return filestore.Secret(ctx, s.path())
	}
	k, err := c.LoadSecrets()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	secret := make([]byte, 16)
	entropy.Read(secret)
	f, err := os.CreateTemp(filepath.Dir(c.SecretFile), "secret-*.new") // mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = fmt.Fprintf(f, "%x\n", secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err = os.Link(f.Name(), c.SecretFile); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, wrong("write a secret there: openssl rand -hex 16", "%w", err)
	}
	return c.LoadSecrets()
}

// compare returns an error if the command asks for another store than the one that exists.
func (c *creation) compare(s openStore, d lease.Description) error {
	given := c.cmd.Flags().Changed
	switch {
	case given("nodes") && (c.asked.First != d.First || c.asked.Nodes != d.Nodes),
		given("block-size") && c.asked.BlockSize != d.BlockSize,
		given("longest-ttl") && c.asked.LongestTTL != d.LongestTTL,
		c.asked.Keyless != d.Keyless:
		return fmt.Errorf("%w, with %s, which cannot change: leave out the flags, or create "+
			"another store elsewhere", lease.ErrExists, summary(d))
	case d.Keyless:
		return nil
	}
	k, err := s.settings.LoadSecrets()
	if err == nil {
		_, err = d.Find(k)
	}
	return err
}

// summary describes the nodes and leases of a store.
func summary(d lease.Description) string {
	text := fmt.Sprintf("nodes %d to %d in blocks of %d, leases of up to %s", d.First,
		d.First+d.Nodes-1, d.BlockSize, shortly(d.LongestTTL))
	if d.Keyless {
		text += ", without a secret"
	}
	return text
}

// directory reports whether the store is a lease directory, which no operator needs to create.
func (s openStore) directory() bool { return strings.HasPrefix(s.settings.Store, "file:") }

// path returns the path of a lease directory.
func (s openStore) path() string { return strings.TrimPrefix(s.settings.Store, "file:") }
