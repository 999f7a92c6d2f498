package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// creation is the command `lease create` with its flags.
type creation struct {
	cmd   *cobra.Command
	asked lease.Description
}

func leaseCreateCommand(f *commonFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --store URL --secret-file FILE",
		Short: "Create a lease store and its secret, once",
		Long: `create tests the server, creates a lease store, and writes its new secret to FILE,
which must not exist, with mode 0600. Give the file and the URL to every process. If
create is interrupted, run the same command again. If the store exists and FILE has
its secret, create changes nothing; flags that differ from the store are refused.

A lease directory (file:DIR) has its own secret, and the first process creates it: run
create only to set another block size or a shorter longest TTL.`,
		Example: `  traceflake lease create --store postgres://db/traceflake --secret-file secret
  traceflake lease create --store etcd://host:2379 --secret-file secret --block-size 32`,
	}
	c := creation{cmd: cmd}
	cmd.RunE = func(*cobra.Command, []string) error { return f.withStore(cmd, c.run) }
	f.addSecret(cmd)
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

// run creates the store, or completes it, or finds that it exists.
func (c *creation) run(ctx context.Context, s openStore) error {
	embedded, file := s.KeepsSecret(), s.settings.SecretFile
	switch {
	case embedded && file != "":
		return fmt.Errorf("%s has a secret of its own: leave out --secret-file and "+
			"TRACEFLAKE_SECRET_FILE", s)
	case !embedded && file == "":
		return errors.New("no secret file: name the file to which the new secret is written, " +
			"with --secret-file or TRACEFLAKE_SECRET_FILE")
	}
	d, err := s.describe(ctx)
	complete := err == nil
	var secret *secretFile
	verb := "created"
	switch {
	case d.ID != "":
		verb = "the store exists:"
		secret, err = c.existing(d, errors.Is(err, lease.ErrNoStore), file)
	case errors.Is(err, lease.ErrNoStore):
		d, secret, err = c.planned(s)
	}
	if err != nil {
		return err
	}
	if !complete || !embedded { // a server's is compared once more
		if err := s.Create(ctx, d); err != nil {
			return err
		}
	}
	if err := secret.keep(); err != nil {
		return fmt.Errorf("secret: the store was created, but: %w; run the same command again", err)
	}
	out := c.cmd.OutOrStdout()
	fmt.Fprintf(out, "%s %s: ID %s, %s\n", verb, s, d.ID, summary(d))
	if !embedded {
		fmt.Fprintf(out, "for every process: TRACEFLAKE_STORE is the URL of the store, with its "+
			"own user and password; TRACEFLAKE_SECRET_FILE is the path of a copy of %s\n", file)
	}
	return nil
}

// differs reports whether flags of the command line contradict a store.
func (c *creation) differs(d lease.Description) bool {
	given := c.cmd.Flags().Changed
	return given("nodes") && (c.asked.First != d.First || c.asked.Nodes != d.Nodes) ||
		given("block-size") && c.asked.BlockSize != d.BlockSize ||
		given("longest-ttl") && c.asked.LongestTTL != d.LongestTTL
}

// existing returns the secret of a store that exists, unless the command asks for another store.
func (c *creation) existing(d lease.Description, interrupted bool, file string) (
	*secretFile, error) {
	if c.differs(d) {
		return nil, fmt.Errorf("%w, with %s, which cannot change: leave out the flags, or create "+
			"another store elsewhere", lease.ErrExists, summary(d))
	}
	if file == "" { // the store has its own
		return nil, nil
	}
	secret, err := openSecret(file, d.ID)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	if missing || !slices.Contains(d.Secrets, d.Fingerprint(secret.codec)) {
		advice := "give the secret file of that store, or create another one elsewhere"
		own := file + "." + d.ID + unfinished
		if _, err := os.Stat(own); err == nil {
			advice = fmt.Sprintf("it is in %s: rename it to OTHER.%s%s, and give the name OTHER",
				own, d.ID, unfinished)
		}
		return nil, fmt.Errorf("%w, with the ID %s, created at %s; its secret is not in %s: %s",
			lease.ErrExists, d.ID, rfc3339(d.Created), file, advice)
	}
	if interrupted && secret.temporary == "" {
		return nil, fmt.Errorf("the creation of the store %s was interrupted, but its secret is "+
			"in %s, which gets this name after the creation: if the store was restored from a "+
			"backup, processes may have used the secret since: replace it, with traceflake lease "+
			"secret replace; if it was not, rename the file to %[2]s.%[1]s%[3]s, and run the same "+
			"command again", d.ID, file, unfinished)
	}
	return secret, nil
}

// planned returns the description of a new store, and its new secret, or nil if the store will have
// its own.
func (c *creation) planned(s openStore) (d lease.Description, secret *secretFile, err error) {
	file := s.settings.SecretFile
	if file == "" { // as if a process created it
		c.asked.LongestTTL = cmp.Or(c.asked.LongestTTL, lease.MaxTTL)
	} else if _, err := os.Lstat(file); err == nil {
		return d, nil, fmt.Errorf("%s exists, and a new store needs a new secret: name a file "+
			"that does not exist", file)
	}
	c.asked.Created = now()
	d, err = stores.NewDescription(c.asked)
	if err != nil || file == "" {
		return d, nil, err
	}
	if secret, err = generateSecret(file, d.ID, s); err == nil {
		d.Secrets = []string{d.Fingerprint(secret.codec)}
	}
	return d, secret, err
}

// summary describes the nodes and leases of a store.
func summary(d lease.Description) string {
	return fmt.Sprintf("nodes %d to %d in blocks of %d, leases of up to %s", d.First,
		d.First+d.Nodes-1, d.BlockSize, shortly(d.LongestTTL))
}
