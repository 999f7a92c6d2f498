package setup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// The names of the variables.
const (
	StoreVar      = "TRACEFLAKE_STORE"
	SecretFileVar = "TRACEFLAKE_SECRET_FILE"
	TTLVar        = "TRACEFLAKE_TTL"
	StrictVar     = "TRACEFLAKE_STRICT"
)

// known are all variables that exist: those above, and those of the command, of the vmclock device
// and of this repository's tests. docs/configuration.md lists them.
var known = map[string]bool{
	StoreVar: true, SecretFileVar: true, TTLVar: true, StrictVar: true,
	"TRACEFLAKE_CLICKHOUSE_DSN": true, "TRACEFLAKE_POSTGRES_DSN": true, "TRACEFLAKE_VMCLOCK": true,
	"TRACEFLAKE_ENGINES": true,
}

// Config holds the settings, for programs that do not use the environment. The zero Config is zero
// configuration.
type Config struct {
	Store      string        // URL
	SecretFile string        // path; for a store without a secret of its own
	TTL        time.Duration // 0: lease.DefaultTTL; a store grants no more than its longest TTL
	Strict     bool          // problems that retrying cannot solve are errors of Open

	MeterProvider metric.MeterProvider // of all metrics; nil: the global one. Env does not set it
}

// ErrConfig is returned if a setting is invalid. The text names the variable and its value, and
// says what to do.
var ErrConfig = errors.New("setup: bad configuration")

// Env reads the variables; [Config.Check] checks them. An empty one counts as not set. One that
// begins with TRACEFLAKE_ and does not exist is reported to [otel.Handle]. Errors: [ErrConfig].
func Env() (Config, error) {
	for _, name := range Unknown(os.Environ()) {
		otel.Handle(fmt.Errorf("setup: the variable %s is not known and has no effect; "+
			"docs/configuration.md lists those that exist", name))
	}
	c := Config{Store: os.Getenv(StoreVar), SecretFile: os.Getenv(SecretFileVar)}
	var err error
	if text := os.Getenv(TTLVar); text != "" {
		if c.TTL, err = time.ParseDuration(text); err != nil || c.TTL == 0 {
			return Config{}, bad(TTLVar, strconv.Quote(text), errTTL)
		}
	}
	if text := os.Getenv(StrictVar); text != "" {
		if c.Strict, err = strconv.ParseBool(text); err != nil {
			return Config{}, bad(StrictVar, strconv.Quote(text), errors.New("want 1 or 0"))
		}
	}
	return c, nil
}

// Unknown returns the names in an environment that begin with TRACEFLAKE_ and that nothing reads,
// so that a mistyped one does not go unnoticed, each with the known name that it resembles. Values
// are left out: one may be a secret.
func Unknown(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "TRACEFLAKE_") && !known[name] && !isServiceLink(name) {
			if meant := nearest(name); meant != "" {
				name += " (did you mean " + meant + "?)"
			}
			names = append(names, name)
		}
	}
	return names
}

// nearest returns the known variable that begins with a name or differs least from it, or "" if
// none is near.
func nearest(name string) (best string) {
	least := 3 // letters: two that are exchanged count twice
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		if name != "TRACEFLAKE_" && strings.HasPrefix(candidate, name) {
			return candidate
		}
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, deleted or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// isServiceLink reports whether Kubernetes sets the variable in each pod for a Service whose name
// begins with traceflake, such as TRACEFLAKE_SERVICE_HOST and TRACEFLAKE_PORT_80_TCP.
func isServiceLink(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

var errTTL = errors.New("want a duration from 2s to 24h, such as 10m")

// Check returns an error for settings that are invalid with any store: [ErrConfig].
func (c Config) Check() error {
	const minTTL = 2 * time.Second // the shortest that lease.WithTTL takes
	switch {
	case c.TTL != 0 && (c.TTL < minTTL || c.TTL > lease.MaxTTL):
		return bad(TTLVar, c.TTL.String(), errTTL)
	case c.Store != "":
		return nil
	}
	for _, variable := range []struct {
		name string
		set  bool
	}{
		{SecretFileVar, c.SecretFile != ""}, {TTLVar, c.TTL != 0}, {StrictVar, c.Strict},
	} {
		if variable.set {
			return fmt.Errorf("%w: %s is set, but %s is not: set both for leased nodes, or neither",
				ErrConfig, variable.name, StoreVar)
		}
	}
	return nil
}

// LoadKeyring reads the secrets in a file as [ReadKeyring] does. A file that every user of the
// machine can read is reported to [otel.Handle].
func LoadKeyring(path string) (*randflake.Keyring, error) {
	k, err := ReadKeyring(path)
	if err != nil {
		return nil, err
	}
	if err := CheckSecretFile(path); err != nil {
		otel.Handle(
			fmt.Errorf("setup: %w: run chmod o= on it; in Kubernetes, set the volume's "+
				"defaultMode to 0440", err))
	}
	return k, nil
}

// CheckSecretFile returns an error if every user of this machine can read the file.
func CheckSecretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 ||
		runtime.GOOS == "windows" {
		return err
	}
	return fmt.Errorf("every user of this machine can read the secret in %s (mode %04o)", path,
		info.Mode().Perm())
}

// ReadKeyring reads the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content.
func ReadKeyring(path string) (*randflake.Keyring, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// bad returns an error that names the invalid setting.
func bad(name, value string, err error) error {
	return fmt.Errorf("%w: %s=%s: %w", ErrConfig, name, value, err)
}

var address = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)(?:[^?]*@)?([^?@]*)(?:\?[^@]*)?$`)

// Address returns the store's URL without its possible secrets: user, password and parameters. It
// shows no part of a text that is not clearly a URL.
func (c Config) Address() string {
	if parts := address.FindStringSubmatch(c.Store); parts != nil {
		return parts[1] + parts[2]
	}
	if c.Store == "" || strings.HasPrefix(c.Store, "file:") {
		return c.Store
	}
	return "…"
}
