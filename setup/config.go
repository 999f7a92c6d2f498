package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/boltstore" // also registers bolt:PATH
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

// The names of the variables.
const (
	StoreVar      = "TRACEFLAKE_STORE"
	SecretFileVar = "TRACEFLAKE_SECRET_FILE"
	NodesVar      = "TRACEFLAKE_NODES"
	BlockSizeVar  = "TRACEFLAKE_BLOCK_SIZE"
	TTLVar        = "TRACEFLAKE_TTL"
	MaxBlocksVar  = "TRACEFLAKE_MAX_BLOCKS"
)

// Config is what the variables say, for programs that have their settings from
// elsewhere. The zero Config is zero configuration.
type Config struct {
	Store      string           // URL
	SecretFile string           // path
	Nodes      driver.NodeRange // zero: the store's own; or only its BlockSize is set
	TTL        time.Duration    // 0: lease.DefaultTTL
	MaxBlocks  int              // 0: the Keeper's default
}

// ErrConfig is returned for a setting that makes no sense. The text names the variable.
var ErrConfig = errors.New("setup: bad configuration")

// FromEnv returns the generator that the environment asks for, and a function
// that ends it: it gives the leases back and closes the store. Call it after
// the TracerProvider's Shutdown.
//
// It waits for the first lease, for a second at most. IDs made while there is
// none are random behind the clear half, which is reported to otel.Handle. Errors: [ErrConfig], those of reading the secret
// and of opening the store. ctx gives its values to the calls of the store; its
// end does not end the generator.
func FromEnv(ctx context.Context) (*idgen.Generator, func(context.Context) error, error) {
	c, err := Env()
	if err != nil {
		return nil, nil, err
	}
	return c.Open(ctx)
}

// Env reads the variables. An empty one counts as not set. Errors: [ErrConfig].
func Env() (Config, error) {
	c := Config{Store: os.Getenv(StoreVar), SecretFile: os.Getenv(SecretFileVar)}
	for _, v := range []struct {
		name string
		read func(string) error
	}{
		{NodesVar, func(s string) (err error) {
			c.Nodes.First, c.Nodes.Nodes, err = parseNodes(s)
			return err
		}},
		{BlockSizeVar, func(s string) error {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil || n == 0 {
				return fmt.Errorf("%q is no number of nodes", s)
			}
			c.Nodes.BlockSize = uint32(n)
			return nil
		}},
		{TTLVar, func(s string) (err error) {
			if c.TTL, err = time.ParseDuration(s); err != nil {
				return fmt.Errorf("%q is no duration such as 10m or 90s", s)
			}
			return checkTTL(c.TTL)
		}},
		{MaxBlocksVar, func(s string) (err error) {
			if c.MaxBlocks, err = strconv.Atoi(s); err != nil || c.MaxBlocks < 1 {
				return fmt.Errorf("%q is no number from 1 on", s)
			}
			return nil
		}},
	} {
		s := os.Getenv(v.name)
		if s == "" {
			continue
		}
		if err := v.read(s); err != nil {
			return Config{}, fmt.Errorf("%w: %s: %w", ErrConfig, v.name, err)
		}
	}
	return c, nil
}

// parseNodes reads FIRST+COUNT.
func parseNodes(s string) (first, count uint32, err error) {
	a, b, ok := strings.Cut(s, "+")
	f, errF := strconv.ParseUint(strings.TrimSpace(a), 10, 32)
	n, errN := strconv.ParseUint(strings.TrimSpace(b), 10, 32)
	const all = randflake.MaxNode + 1
	if !ok || errF != nil || errN != nil || n == 0 || f >= all || n > all-f {
		return 0, 0, fmt.Errorf("%q is not of the form FIRST+COUNT, with nodes below %d", s, all)
	}
	return uint32(f), uint32(n), nil
}

// firstLease is how long a start waits for a lease.
const firstLease = time.Second

const minTTL = 2 * time.Second

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > lease.MaxTTL {
		return fmt.Errorf("%s is not from %s to %s", ttl, minTTL, lease.MaxTTL)
	}
	return nil
}

// Open does what [FromEnv] does, with these settings.
func (c Config) Open(ctx context.Context) (*idgen.Generator, func(context.Context) error, error) {
	if c.Store == "" {
		for _, v := range []struct {
			name string
			set  bool
		}{
			{SecretFileVar, c.SecretFile != ""}, {NodesVar, c.Nodes.Nodes != 0}, {BlockSizeVar, c.Nodes.BlockSize != 0},
			{TTLVar, c.TTL != 0}, {MaxBlocksVar, c.MaxBlocks != 0},
		} {
			if v.set {
				return nil, nil, fmt.Errorf("%w: %s is set, but %s is not: it goes with leased nodes", ErrConfig, v.name, StoreVar)
			}
		}
		return idgen.New(), func(context.Context) error { return nil }, nil
	}
	keeper, stop, err := c.keeper(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Why there is no lease, the Keeper reports; it goes on trying.
	ctx, cancel := context.WithTimeout(ctx, firstLease)
	defer cancel()
	_ = keeper.Ready(ctx)
	return idgen.New(idgen.WithSource(keeper)), stop, nil
}

func (c Config) keeper(ctx context.Context) (*lease.Keeper, func(context.Context) error, error) {
	var keyring *randflake.Keyring
	var err error
	if c.SecretFile != "" {
		if keyring, err = LoadKeyring(c.SecretFile); err != nil {
			return nil, nil, fmt.Errorf("setup: %s: %w", SecretFileVar, err)
		}
	}
	var opts []lease.Option
	if c.TTL != 0 {
		if err := checkTTL(c.TTL); err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrConfig, TTLVar, err)
		}
		opts = append(opts, lease.WithTTL(c.TTL))
	}
	if c.MaxBlocks != 0 {
		opts = append(opts, lease.WithMaxBlocks(c.MaxBlocks))
	}
	if err := c.Nodes.CheckAsked(); err != nil {
		return nil, nil, fmt.Errorf("%w: %s, %s: %w", ErrConfig, NodesVar, BlockSizeVar, err)
	}
	if err := boltstore.CheckUse(c.Store, c.Nodes, keyring != nil, c.TTL); err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w; see %s, %s and %s", ErrConfig, StoreVar, err, SecretFileVar, NodesVar, TTLVar)
	}
	store, err := driver.Open(ctx, c.Store, c.Nodes)
	if err != nil {
		return nil, nil, fmt.Errorf("setup: %s: %w", StoreVar, err)
	}
	var codec *randflake.Codec
	if own, ok := store.(driver.CodecStore); ok {
		codec = own.Codec()
	}
	if keyring != nil {
		codec = keyring.Codec()
	}
	if codec == nil {
		err := fmt.Errorf("%w: %s: this store has no secret of its own; set %s", ErrConfig, StoreVar, SecretFileVar)
		return nil, nil, errors.Join(err, store.Close())
	}
	keeper, err := lease.Start(ctx, store, codec, opts...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("setup: %w", err), store.Close())
	}
	var once sync.Once
	var stopErr error
	return keeper, func(ctx context.Context) error {
		once.Do(func() { stopErr = errors.Join(keeper.Close(ctx), store.Close()) })
		return stopErr
	}, nil
}
