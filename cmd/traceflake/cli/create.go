package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/randflake"
)

func leaseCreateCommand(f *commonFlags) *cobra.Command {
	var asked lease.Description
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
  traceflake lease create --store s3://bucket --without-secret --nodes 1024 --block-size 1`,
		RunE: f.withStore(func(ctx context.Context, cmd *cobra.Command, s openStore) error {
			return s.create(ctx, cmd, asked)
		}),
	}
	f.addSecret(cmd)
	cmd.Flags().BoolVar(&asked.Keyless, "without-secret", false,
		"create a store for other generators")
	cmd.Flags().Uint32Var(&asked.First, "first-node", 0, "the store's first node")
	cmd.Flags().Uint32Var(&asked.Nodes, "nodes", 0,
		"how many nodes the store has (default all, 131072)")
	cmd.Flags().Uint32Var(&asked.BlockSize, "block-size", 0, "nodes in a block, a power of two; "+
		"a process leases one block at a time (default 8)")
	durationFlag(cmd, &asked.LongestTTL, "longest-ttl", 0,
		"longest lease (default "+shortly(lease.DefaultTTL)+", in a lease directory "+
			shortly(lease.MaxTTL)+")")
	return cmd
}

// create creates the store, or finds that it exists and is as asked for.
func (s openStore) create(ctx context.Context, cmd *cobra.Command, asked lease.Description) error {
	d, err := s.describe(ctx)
	verb := "the store exists:"
	if errors.Is(err, lease.ErrNoStore) {
		verb = "created"
		if s.settings.Directory() != "" { // as if a process created it
			asked.LongestTTL = cmp.Or(asked.LongestTTL, lease.MaxTTL)
		}
		var secret *randflake.Codec
		if !asked.Keyless {
			k, err := s.createSecret(ctx)
			if err != nil {
				return err
			}
			secret = k.Codec()
		}
		d, err = s.Create(ctx, asked, secret)
	}
	if err == nil {
		err = s.compare(d, asked)
	}
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s: history %s, %s\n", verb, s, d.ID, summary(d))
	}
	return err
}

// createSecret returns the secrets of the settings. If the secret file does not exist, it is
// created with a new secret.
func (s openStore) createSecret(ctx context.Context) (*randflake.Keyring, error) {
	if s.settings.OwnSecret() {
		return filestore.Secret(ctx, s.settings.Directory())
	}
	k, err := s.settings.LoadSecrets()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	f, err := os.OpenFile(s.settings.SecretFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	var secret [16]byte
	entropy.Read(secret[:])
	_, err = fmt.Fprintf(f, "%x\n", secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(f.Name())) // another attempt would read it
	}
	return s.settings.LoadSecrets()
}

// compare returns an error if another store than d is asked for, or if d has another secret.
func (s openStore) compare(d, asked lease.Description) error {
	if asked.Nodes == 0 {
		asked.First, asked.Nodes = d.First, d.Nodes
	}
	asked.BlockSize = cmp.Or(asked.BlockSize, d.BlockSize)
	asked.LongestTTL = cmp.Or(asked.LongestTTL, d.LongestTTL)
	if summary(asked) != summary(d) {
		return fmt.Errorf("%w, with %s, which cannot change: leave out the flags, or create "+
			"another store elsewhere", lease.ErrExists, summary(d))
	}
	if d.Keyless {
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
