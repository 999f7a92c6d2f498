package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// commonFlags are shared by several commands.
type commonFlags struct {
	flags fleet.Config                 // what flags set
	env   func() (fleet.Config, error) // the environment, read and reported once
}

// addStore adds the flag --store to a command, or to all commands below a group.
func (f *commonFlags) addStore(to *pflag.FlagSet, what string) {
	to.StringVar(&f.flags.Store, "store", "", what+": "+strings.Join(stores.Schemes(), "…, ")+
		"… (default $TRACEFLAKE_STORE)")
}

// addSecret adds the flag --secret-file to a command.
func (f *commonFlags) addSecret(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.flags.SecretFile, "secret-file", "", "secret file: one secret per "+
		"line, the first for new IDs (default $TRACEFLAKE_SECRET_FILE)")
}

// addKeys adds the flags that [commonFlags.secrets] reads to a command.
func (f *commonFlags) addKeys(cmd *cobra.Command) {
	f.addSecret(cmd)
	cmd.Flags().StringVar(&f.flags.Store, "store", "", "lease directory whose own secret is "+
		"used, file:DIR (default $TRACEFLAKE_STORE)")
}

// config returns the settings of the environment, overridden by the flags.
func (f *commonFlags) config() (fleet.Config, error) {
	c, err := f.env()
	c.SecretFile = cmp.Or(f.flags.SecretFile, c.SecretFile)
	c.Store = cmp.Or(f.flags.Store, c.Store)
	return c, err
}

// keyring returns the secrets, or nil if there is no secret file.
func (f *commonFlags) keyring() (*randflake.Keyring, error) {
	c, err := f.config()
	if err != nil || c.SecretFile == "" {
		return nil, err
	}
	k, err := fleet.LoadKeyring(c.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return k, nil
}

// secrets returns the secrets of the file, or the secret that the store keeps, or an error.
func (f *commonFlags) secrets(cmd *cobra.Command) (*randflake.Keyring, error) {
	k, err := f.keyring()
	if k != nil || err != nil {
		return k, err
	}
	err = f.withStore(cmd, func(ctx context.Context, s openStore) (err error) {
		if !s.KeepsSecret() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, describeTimeout)
		defer cancel()
		k, err = s.Secrets(ctx)
		return err
	})
	if errors.Is(err, errNoStore) || err == nil && k == nil {
		err = errNoSecret
	}
	return k, err
}

var (
	errNoSecret = errors.New("no secret: give --secret-file or set TRACEFLAKE_SECRET_FILE")
	errNoStore  = errors.New("no store: give --store or set TRACEFLAKE_STORE")
	errNoFile   = errors.New("the lease directory has no complete lease store yet; the next " +
		"process creates or completes it, with its own secret")
)

// noStore replaces the advice of lease.ErrNoStore for a store that nobody needs to create.
func noStore(s stores.Store, err error) error {
	if s.KeepsSecret() && errors.Is(err, lease.ErrNoStore) {
		return errNoFile
	}
	return err
}

// storeTimeout limits a command, which may write every page of a store.
const storeTimeout = 2 * time.Minute

// describeTimeout limits the first call of a command.
const describeTimeout = 10 * time.Second

// now is this machine's clock.
var now = time.Now

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// openStore is a store that a command has opened, with its settings.
type openStore struct {
	stores.Store
	settings fleet.Config
}

// String returns the address of the store without its password.
func (s openStore) String() string { return redact.Address(s.settings.Store) }

// describe returns the description of the store, or an error if it does not answer soon.
func (s openStore) describe(ctx context.Context) (lease.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	return s.Describe(ctx)
}

// withStore opens the store of the flags or the environment, which it does not create, for one
// call.
func (f *commonFlags) withStore(cmd *cobra.Command,
	call func(context.Context, openStore) error) error {
	c, err := f.config()
	if err == nil && c.Store == "" {
		err = errNoStore
	}
	if err != nil {
		return err
	}
	s, err := stores.Open(c.Store)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithTimeout(cmd.Context(), storeTimeout)
	defer cancel()
	return noStore(s, call(ctx, openStore{s, c}))
}
