package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// flags are shared by several commands.
type flags struct {
	secretFile string
	store      string
	env        func() (setup.Config, error) // the environment, read and reported once
}

// addStore adds the flag --store to a command, or to all commands below a group.
func (f *flags) addStore(cmd *cobra.Command, to *pflag.FlagSet, what string) {
	to.StringVar(&f.store, "store", "", what+": "+strings.Join(driver.Schemes(), "…, ")+"… (default $TRACEFLAKE_STORE)")
	complete(cmd, "store", cobra.ShellCompDirectiveNoSpace, driver.Schemes()...)
}

// config is the environment, overridden by the flags.
func (f *flags) config() (setup.Config, error) {
	c, err := f.env()
	if f.secretFile != "" {
		c.SecretFile = f.secretFile
	}
	if f.store != "" {
		c.Store = f.store
	}
	return c, err
}

// keyring returns the secrets, or nil if there is no secret file.
func (f *flags) keyring() (*randflake.Keyring, error) {
	path := f.secretFile
	if path == "" {
		path = os.Getenv(setup.SecretFileVar)
	}
	if path == "" {
		return nil, nil
	}
	k, err := setup.LoadKeyring(path)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return k, nil
}

// decoding returns the secrets that decode IDs: those of the file, otherwise the store's own,
// otherwise nil.
func (f *flags) decoding(s any) (*randflake.Keyring, error) {
	k, err := f.keyring()
	if own, ok := s.(driver.CodecStore); ok && k == nil && err == nil {
		k = randflake.NewKeyring(own.Codec())
	}
	return k, err
}

var (
	errNoSecret = errors.New("no secret: give --secret-file or set TRACEFLAKE_SECRET_FILE")
	errNoStore  = errors.New("no store: give --store or set TRACEFLAKE_STORE")
)

// openStore opens the store of the flags or the environment. A store that is
// opened for reading is never written, whatever the environment says: its nodes
// and its block size are its own.
func (f *flags) openStore(ctx context.Context, use access) (driver.Store, error) {
	c, err := f.config()
	switch {
	case err != nil:
		return nil, err
	case c.Store == "":
		return nil, errNoStore
	}
	return openURL(ctx, c.Store, c.Nodes, use)
}

// access is what a store is opened for.
type access int

const (
	reading  access = iota
	writing         // to an existing store
	creating        // to any store; a bolt file is created
)

func openURL(ctx context.Context, url string, nodes driver.NodeRange, use access) (driver.Store, error) {
	var opts []driver.Option
	if use != creating {
		opts = append(opts, driver.Existing())
	}
	if use == reading {
		nodes = driver.NodeRange{}
	}
	s, err := driver.Open(ctx, url, nodes, opts...)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}
