package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
)

// creation is the command `lease create` with its flags.
type creation struct {
	*commonFlags
	nodes string
	asked lease.Description
}

func leaseCreateCommand(f *commonFlags) *cobra.Command {
	c := &creation{commonFlags: f}
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
		RunE: c.run,
	}
	f.addSecret(cmd)
	cmd.Flags().StringVar(&c.nodes, "nodes", "",
		"nodes of the store, FIRST+COUNT (default all, 0+131072)")
	cmd.Flags().Uint32Var(&c.asked.BlockSize, "block-size", 8,
		"nodes in a block, a power of two; a process leases one block at a time")
	durationFlag(cmd, &c.asked.LongestTTL, "longest-ttl", 0,
		"longest lease (default "+shortly(lease.DefaultTTL)+", in a lease directory "+
			shortly(lease.MaxTTL)+")")
	return cmd
}

func (c *creation) run(cmd *cobra.Command, _ []string) error {
	if c.nodes != "" {
		var rest string
		n, _ := fmt.Sscanf(c.nodes, "%d+%d%s", &c.asked.First, &c.asked.Nodes, &rest)
		if n != 2 || c.asked.Nodes == 0 {
			return fmt.Errorf("--nodes: %q is not FIRST+COUNT, such as 0+1024", c.nodes)
		}
	}
	return c.withStore(cmd, pagesTimeout, func(ctx context.Context, s stores.Store) error {
		return c.create(ctx, cmd, s)
	})
}

// check returns an error for settings that contradict the kind of store.
func (c *creation) check(cmd *cobra.Command, env fleet.Config, embedded bool) error {
	noTTL := cmd.Flags().Changed("longest-ttl") && c.asked.LongestTTL == 0
	switch {
	case c.asked.BlockSize == 0, noTTL:
		return errors.New("--block-size and --longest-ttl must be positive")
	case embedded && env.SecretFile != "":
		return fmt.Errorf(
			"%s has a secret of its own: leave out --secret-file and TRACEFLAKE_SECRET_FILE",
			redact.Address(env.Store))
	case !embedded && env.SecretFile == "":
		return errors.New("no secret file: name the file to which the new secret is written, " +
			"with --secret-file or TRACEFLAKE_SECRET_FILE")
	}
	return nil
}

// differs returns an error if flags of the command line contradict the store.
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
			return fmt.Errorf("%w, with %s: --%s=%s cannot change that; leave it out, or create "+
				"another store elsewhere",
				lease.ErrExists, summary(d), flag.name, given.Value)
		}
	}
	return nil
}

// create creates the store, or completes it, or finds that it exists.
func (c *creation) create(ctx context.Context, cmd *cobra.Command, s stores.Store) error {
	env, err := c.config()
	if err != nil {
		return err
	}
	embedded := s.KeepsSecret()
	if err := c.check(cmd, env, embedded); err != nil {
		return err
	}
	if embedded { // as if a process created it
		c.asked.LongestTTL = cmp.Or(c.asked.LongestTTL, lease.MaxTTL)
	}
	d, err := describe(ctx, s)
	exists := err == nil || d.ID != ""
	complete := err == nil
	if !exists && !errors.Is(err, lease.ErrNoStore) {
		return err
	}
	var secret *secretFile
	verb := "created"
	if exists {
		verb = "the store exists:"
		secret, err = c.existing(cmd, d, env.SecretFile)
	} else {
		d, secret, err = c.planned(env)
	}
	if err != nil {
		return err
	}
	if exists && !complete && !embedded && secret.temporary == "" {
		return fmt.Errorf("the creation of the store %s was interrupted, but its secret is in %s, "+
			"which gets this name after the creation: if the store was restored from a backup, "+
			"processes may have used the secret since: replace it, with traceflake lease secret "+
			"replace; if it was not, rename the file to %[2]s.%[1]s%[3]s, and run the same command "+
			"again", d.ID, env.SecretFile, unfinished)
	}
	if !complete || !embedded { // a server's is compared once more
		err := s.Create(ctx, d)
		if !exists && errors.Is(err, lease.ErrExists) { // another operator was first
			err = errors.Join(err, secret.discard())
		}
		if err != nil {
			return err
		}
	}
	if err := secret.keep(); err != nil {
		return fmt.Errorf("secret: the store was created, but: %w; run the same command again", err)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s %s: ID %s, %s\n", verb, redact.Address(env.Store), d.ID, summary(d))
	if !embedded {
		fmt.Fprintf(out, "for every process: TRACEFLAKE_STORE is the URL of the store, with its "+
			"own user and password; TRACEFLAKE_SECRET_FILE is the path of a copy of %s\n",
			env.SecretFile)
	}
	return nil
}

// existing returns the secret of a store that exists, or nil if the store has its own, unless the
// command asks for another store.
func (c *creation) existing(cmd *cobra.Command, d lease.Description, file string) (
	secret *secretFile, err error) {
	if file != "" {
		if secret, err = secretOf(file, d); err != nil {
			return nil, err
		}
	}
	return secret, c.differs(cmd, d)
}

// planned returns the description of a new store, and its new secret, or nil if the store will have
// its own.
func (c *creation) planned(env fleet.Config) (d lease.Description, secret *secretFile,
	err error) {
	c.asked.Created = now()
	d, err = stores.NewDescription(c.asked)
	if err != nil || env.SecretFile == "" {
		return d, nil, err
	}
	if secret, err = newSecret(d.ID, env); err == nil {
		d.Secrets = []string{d.Fingerprint(secret.codec)}
	}
	return d, secret, err
}

// summary describes the nodes and leases of a store.
func summary(d lease.Description) string {
	return fmt.Sprintf("nodes %d to %d in blocks of %d, leases of up to %s", d.First,
		d.First+d.Nodes-1, d.BlockSize, shortly(d.LongestTTL))
}
