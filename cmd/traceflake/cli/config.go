package cli

import (
	"cmp"
	"context"
	"errors"
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
	cmd.Flags().StringVar(&f.flags.SecretFile, "secret-file", "", "file with secrets "+
		"(default $TRACEFLAKE_SECRET_FILE, $TRACEFLAKE_SECRET, or that of a lease directory)")
}

// config returns the settings of the environment, overridden by the flags.
func (f *commonFlags) config() (fleet.Config, error) {
	c, err := f.env()
	if f.flags.SecretFile != "" {
		c.SecretFile, c.Secrets = f.flags.SecretFile, nil
	}
	c.Store = cmp.Or(f.flags.Store, c.Store)
	return c, err
}

// secrets returns the secrets.
func (f *commonFlags) secrets() (*randflake.Keyring, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	return c.LoadSecrets()
}

// keys returns the keys with which IDs are decoded: those of the store's histories or, without a
// store, the secrets themselves.
func (f *commonFlags) keys(cmd *cobra.Command) (*randflake.Keyring, error) {
	k, err := f.secrets()
	if c, _ := f.config(); err == nil && c.Store != "" {
		use := f.withStore(func(ctx context.Context, _ *cobra.Command, s openStore) error {
			d, secrets, err := s.histories(ctx)
			k = fleet.Keys(secrets, d)
			return err
		})
		err = use(cmd, nil)
	}
	return k, err
}

var errNoStore = errors.New("no store: give --store or set TRACEFLAKE_STORE")

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

// describe returns the description of the store, also of one that moved or whose history is being
// begun, or an error if it does not answer soon.
func (s openStore) describe(ctx context.Context) (lease.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	d, err := s.Describe(ctx)
	if d.ID != "" && !errors.Is(err, lease.ErrNoStore) {
		err = nil
	}
	return d, err
}

// histories returns the description of a store that has a secret, and the secrets.
func (s openStore) histories(ctx context.Context) (d lease.Description, k *randflake.Keyring,
	err error) {
	if k, err = s.settings.LoadSecrets(); err == nil {
		d, err = s.describe(ctx)
	}
	if err == nil && d.Keyless {
		err = withFix("name a store that was created with a secret: the numbers of this one have "+
			"no key", "%w", lease.ErrKeyless)
	}
	return d, k, err
}

// withStore returns what a command runs: it opens the store of the flags or the environment, which
// it does not create, for one call.
func (f *commonFlags) withStore(call func(context.Context, *cobra.Command, openStore) error) func(
	*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
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
		return call(ctx, cmd, openStore{s, c})
	}
}
