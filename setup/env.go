package setup

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

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

	MeterProvider metric.MeterProvider // of all metrics; nil: the global one. Env does not set it
}

// ErrConfig is returned if a setting is invalid. The text names the variable and its value, and
// says what to do.
var ErrConfig = errors.New("setup: bad configuration")

// variable is one setting of a Config.
type variable struct {
	name  string
	read  func(c *Config, text string) error // text is not empty
	show  func(c Config) string              // "" if it is not set
	check func(c Config) error               // nil if every value is valid
}

var variables = []variable{
	{
		name: StoreVar,
		read: func(c *Config, text string) error { c.Store = text; return nil },
		show: Config.store,
	}, {
		name: SecretFileVar,
		read: func(c *Config, text string) error { c.SecretFile = text; return nil },
		show: func(c Config) string { return c.SecretFile },
	}, {
		name: NodesVar,
		read: func(c *Config, text string) (err error) {
			c.Nodes.First, c.Nodes.Nodes, err = parseNodes(text)
			return err
		},
		show:  Config.nodes,
		check: func(c Config) error { return checkNodes(c.Nodes.First, c.Nodes.Nodes) },
	}, {
		name: BlockSizeVar,
		read: func(c *Config, text string) error {
			n, err := strconv.ParseUint(text, 10, 32)
			if c.Nodes.BlockSize = uint32(n); err != nil || n == 0 {
				return errBlockSize
			}
			return nil
		},
		show: func(c Config) string { return unless(c.Nodes.BlockSize == 0, c.Nodes.BlockSize) },
		check: func(c Config) error {
			if n := c.Nodes.BlockSize; n > randflake.MaxNode+1 || n&(n-1) != 0 {
				return errBlockSize
			}
			return nil
		},
	}, {
		name: TTLVar,
		read: func(c *Config, text string) (err error) {
			if c.TTL, err = time.ParseDuration(text); err != nil || c.TTL == 0 {
				return errors.New("want a duration such as 10m or 90s")
			}
			return nil
		},
		show: func(c Config) string { return unless(c.TTL == 0, c.TTL) },
		check: func(c Config) error {
			if c.TTL != 0 && (c.TTL < minTTL || c.TTL > lease.MaxTTL) {
				return fmt.Errorf("want %s to %s", minTTL, lease.MaxTTL)
			}
			return nil
		},
	}, {
		name: MaxBlocksVar,
		read: func(c *Config, text string) (err error) {
			if c.MaxBlocks, err = strconv.Atoi(text); err != nil || c.MaxBlocks == 0 {
				return errMaxBlocks
			}
			return nil
		},
		show: func(c Config) string { return unless(c.MaxBlocks == 0, c.MaxBlocks) },
		check: func(c Config) error {
			if c.MaxBlocks < 0 {
				return errMaxBlocks
			}
			return nil
		},
	}, {
		name: StrictVar,
		read: func(c *Config, text string) (err error) {
			if c.Strict, err = strconv.ParseBool(text); err != nil {
				return errors.New("want 1 or 0")
			}
			return nil
		},
		show: func(c Config) string { return unless(!c.Strict, c.Strict) },
	},
}

// unless returns value as text, or "" if it is not set.
func unless(unset bool, value any) string {
	if unset {
		return ""
	}
	return fmt.Sprint(value)
}

// Env reads the variables. An empty one counts as not set. A variable that begins with TRACEFLAKE_
// and does not exist is reported to [otel.Handle]. Errors: [ErrConfig].
func Env() (Config, error) {
	reportUnknown(os.Environ())
	var c Config
	for _, v := range variables {
		text := os.Getenv(v.name)
		if text == "" {
			continue
		}
		err := v.read(&c, text)
		if err == nil && v.check != nil {
			err = v.check(c)
		}
		if err != nil {
			return Config{}, bad(v.name, strconv.Quote(text), err)
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
	if !ok || errF != nil || errN != nil || n == 0 {
		return 0, 0, errNodes
	}
	return uint32(f), uint32(n), nil
}

func checkNodes(first, count uint32) error {
	const all = randflake.MaxNode + 1
	if first >= all || count > all-first || first != 0 && count == 0 {
		return errNodes
	}
	return nil
}

const minTTL = 2 * time.Second

// check returns an error for settings that are invalid with any store.
func (c Config) check() error {
	for _, v := range variables {
		switch {
		case c.Store == "" && v.show(c) != "":
			return fmt.Errorf("%w: %s is set, but %s is not: set both for leased nodes, or neither",
				ErrConfig, v.name, StoreVar)
		case v.check == nil:
		default:
			if err := v.check(c); err != nil {
				return bad(v.name, v.show(c), err)
			}
		}
	}
	first, n, size := c.Nodes.First, c.Nodes.Nodes, c.Nodes.BlockSize
	if size != 0 && (first%size != 0 || n%size != 0) {
		return bad(NodesVar, c.nodes(),
			fmt.Errorf("want multiples of %d, which is %s", size, BlockSizeVar))
	}
	return nil
}

func (c Config) nodes() string {
	return unless(c.Nodes.First == 0 && c.Nodes.Nodes == 0, fmt.Sprintf("%d+%d", c.Nodes.First, c.Nodes.Nodes))
}

var isScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`).MatchString

// store returns the address without its possible secrets: user, password and parameters. It shows
// no part of a text that is not a URL.
func (c Config) store() string {
	scheme, rest, _ := strings.Cut(c.Store, ":")
	rest, slashes := strings.CutPrefix(rest, "//")
	switch {
	case c.Store == "", scheme == "bolt":
		return c.Store
	case !slashes, !isScheme(scheme):
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
