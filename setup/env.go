package setup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The names of the variables.
const (
	StoreVar      = "TRACEFLAKE_STORE"
	SecretFileVar = "TRACEFLAKE_SECRET_FILE"
	NodesVar      = "TRACEFLAKE_NODES"
	BlockSizeVar  = "TRACEFLAKE_BLOCK_SIZE"
	TTLVar        = "TRACEFLAKE_TTL"
	MaxBlocksVar  = "TRACEFLAKE_MAX_BLOCKS"
	StrictVar     = "TRACEFLAKE_STRICT"
)

// Config holds the settings, for programs that do not use the environment. The zero Config is zero
// configuration.
type Config struct {
	Store      string           // URL
	SecretFile string           // path
	Nodes      driver.NodeRange // zero: the store's own; or only its BlockSize is set
	TTL        time.Duration    // 0: lease.DefaultTTL
	MaxBlocks  int              // 0: the Keeper's default
	Strict     bool             // problems that waiting does not solve are errors of Open
}

// ErrConfig is returned if a setting is invalid. The text names the variable and its value, and
// says what to do.
var ErrConfig = errors.New("setup: bad configuration")

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
			c.Nodes.BlockSize = uint32(n)
			if err != nil || !isBlockSize(c.Nodes.BlockSize) {
				return errBlockSize
			}
			return nil
		}},
		{TTLVar, func(s string) (err error) {
			if c.TTL, err = time.ParseDuration(s); err != nil {
				return errors.New("want a duration such as 10m or 90s")
			}
			return checkTTL(c.TTL)
		}},
		{MaxBlocksVar, func(s string) (err error) {
			if c.MaxBlocks, err = strconv.Atoi(s); err != nil || c.MaxBlocks < 1 {
				return errMaxBlocks
			}
			return nil
		}},
		{StrictVar, func(s string) (err error) {
			if c.Strict, err = strconv.ParseBool(s); err != nil {
				return errors.New("want 1 or 0")
			}
			return nil
		}},
	} {
		s := os.Getenv(v.name)
		if s == "" {
			continue
		}
		if err := v.read(s); err != nil {
			return Config{}, bad(v.name, strconv.Quote(s), err)
		}
	}
	return c, nil
}

// bad returns an error that names the invalid setting.
func bad(name, value string, err error) error {
	return fmt.Errorf("%w: %s=%s: %w", ErrConfig, name, value, err)
}

var (
	errBlockSize = fmt.Errorf("want a power of two from 1 to %d", randflake.MaxNode+1)
	errMaxBlocks = errors.New("want a number of at least 1")
	errNodes     = fmt.Errorf("want FIRST+COUNT, such as 0+1024, with every node below %d",
		randflake.MaxNode+1)
)

// parseNodes reads FIRST+COUNT.
func parseNodes(s string) (first, count uint32, err error) {
	a, b, ok := strings.Cut(s, "+")
	f, errF := strconv.ParseUint(strings.TrimSpace(a), 10, 32)
	n, errN := strconv.ParseUint(strings.TrimSpace(b), 10, 32)
	if !ok || errF != nil || errN != nil || n == 0 || !inRange(uint32(f), uint32(n)) {
		return 0, 0, errNodes
	}
	return uint32(f), uint32(n), nil
}

func inRange(first, count uint32) bool {
	const all = randflake.MaxNode + 1
	return first < all && count <= all-first
}

func isBlockSize(n uint32) bool { return n > 0 && n <= randflake.MaxNode+1 && n&(n-1) == 0 }

const minTTL = 2 * time.Second

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > lease.MaxTTL {
		return fmt.Errorf("want %s to %s", minTTL, lease.MaxTTL)
	}
	return nil
}

// check returns an error for settings that are invalid with any store.
func (c Config) check() error {
	first, n, size := c.Nodes.First, c.Nodes.Nodes, c.Nodes.BlockSize
	switch {
	case c.Store == "":
		for _, v := range []struct {
			name string
			set  bool
		}{
			{SecretFileVar, c.SecretFile != ""}, {NodesVar, n != 0}, {BlockSizeVar, size != 0},
			{TTLVar, c.TTL != 0}, {MaxBlocksVar, c.MaxBlocks != 0}, {StrictVar, c.Strict},
		} {
			if v.set {
				return fmt.Errorf("%w: %s is set, but %s is not: set both for leased nodes, or neither",
					ErrConfig, v.name, StoreVar)
			}
		}
		return nil
	case size != 0 && !isBlockSize(size):
		return bad(BlockSizeVar, fmt.Sprint(size), errBlockSize)
	case first != 0 && n == 0, !inRange(first, n):
		return bad(NodesVar, c.nodes(), errNodes)
	case size != 0 && (first%size != 0 || n%size != 0):
		return bad(NodesVar, c.nodes(),
			fmt.Errorf("want multiples of %d, which is %s", size, BlockSizeVar))
	case c.MaxBlocks < 0:
		return bad(MaxBlocksVar, fmt.Sprint(c.MaxBlocks), errMaxBlocks)
	}
	if c.TTL != 0 {
		if err := checkTTL(c.TTL); err != nil {
			return bad(TTLVar, c.TTL.String(), err)
		}
	}
	return nil
}

func (c Config) nodes() string { return fmt.Sprintf("%d+%d", c.Nodes.First, c.Nodes.Nodes) }

// store returns the address without its possible secrets: user, password and parameters. It shows
// no part of a text that is not a URL.
func (c Config) store() string {
	scheme, rest, ok := strings.Cut(c.Store, ":")
	if scheme == "bolt" {
		return c.Store
	}
	rest, slashes := strings.CutPrefix(rest, "//")
	if !ok || !slashes {
		return "…"
	}
	at, query := strings.LastIndex(rest, "@"), strings.Index(rest, "?")
	switch {
	case query >= 0 && query < at: // either of the two may be in the password
		rest = "…"
	case query >= 0:
		rest = rest[at+1 : query]
	default:
		rest = rest[at+1:]
	}
	return scheme + "://" + rest
}
