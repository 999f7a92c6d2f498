package fleet

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/duration"
	"github.com/traceflake/traceflake/internal/mistakes"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// The names of the variables.
const (
	storeVar  = "TRACEFLAKE_STORE"
	secretVar = "TRACEFLAKE_SECRET"
	fileVar   = "TRACEFLAKE_SECRET_FILE"
	ttlVar    = "TRACEFLAKE_TTL"
	strictVar = "TRACEFLAKE_STRICT"
)

// Config holds the settings; docs/configuration.md describes them. The zero Config is zero
// configuration.
type Config struct {
	Store      string             // URL
	Secrets    *randflake.Keyring // as parsed by randflake.ParseKeyring
	SecretFile string             // or the path of their file; by default that of a file: store
	TTL        time.Duration      // 0: lease.DefaultTTL; a store grants at most its longest TTL
	Strict     bool               // problems that retrying cannot solve are errors of Open

	MeterProvider metric.MeterProvider // of all metrics; nil: the global one. Env does not set it
}

// ErrConfig is returned if a setting is invalid. The text contains the variable, its value unless
// that is a secret, and what to do.
var ErrConfig = errors.New("fleet: bad configuration")

// invalid returns an error that contains the invalid setting and wraps [ErrConfig].
func invalid(name, value string, err error) error {
	return fmt.Errorf("%w: %s=%s: %w", ErrConfig, name, value, err)
}

// Env returns the settings in the environment; [Config.Check] checks them. Spaces around values are
// ignored, and empty variables count as unset. Unknown variables that begin with TRACEFLAKE_ are
// reported to otel.Handle. Errors: [ErrConfig]; Strict is then set all the same, if it is valid.
func Env() (c Config, err error) {
	defer func() { err = redact.Environment(os.Environ()).Error(err) }()
	for _, name := range unknown(os.Environ()) {
		otel.Handle(lease.Advise(&lease.Error{
			Err: fmt.Errorf("fleet: the variable %s is not known and has no effect", name),
			Fix: "correct the name to one of " + strings.Join(known, ", "),
		}))
	}
	value := func(name string) string { return strings.TrimSpace(os.Getenv(name)) }
	c.Store, c.SecretFile = value(storeVar), value(fileVar)
	if text := value(strictVar); text != "" { // first: callers may exit after another error
		if c.Strict, err = strconv.ParseBool(text); err != nil {
			return c, invalid(strictVar, strconv.Quote(text), errors.New("want 1 or 0"))
		}
	}
	if text := value(ttlVar); text != "" {
		if c.TTL, err = duration.Parse(text); err != nil || c.TTL == 0 {
			return c, invalid(ttlVar, strconv.Quote(text), errTTL)
		}
	}
	if text := value(secretVar); text != "" {
		if c.Secrets, err = randflake.ParseKeyring(text); err != nil {
			return c, &lease.Error{Err: fmt.Errorf("%w: %s: %w", ErrConfig, secretVar, err),
				Fix: mistakes.Find(text, misplaced)}
		}
	}
	return c, nil
}

// misplaced are texts that were seen in the place of a secret.
var misplaced = []mistakes.Mistake{
	{Pattern: regexp.MustCompile(`://`), Fix: "set it as " + storeVar},
	{Pattern: regexp.MustCompile(`^/`), Fix: "set it as " + fileVar + ", which is for paths"},
	{Pattern: regexp.MustCompile(`^[A-Za-z0-9+/]{42,}=*$`),
		Fix: "decode it from base64: a Secret of Kubernetes has that under data only, not under " +
			"stringData"},
}

// known contains all variables, sorted: those of a process, of the command and of the vmclock
// device. Those of this repository's tests begin with TRACEFLAKETEST_. docs/configuration.md lists
// both.
var known = []string{"TRACEFLAKE_CLICKHOUSE_DSN", secretVar, fileVar, storeVar, strictVar,
	ttlVar, "TRACEFLAKE_VMCLOCK"}

// unknown returns the unknown variables in an environment that begin with TRACEFLAKE_, such as
// mistyped names, without values, which may be secrets. Kubernetes sets some in each pod for a
// Service whose name begins with traceflake, such as TRACEFLAKE_PORT_80_TCP.
func unknown(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		service := strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
		if strings.HasPrefix(name, "TRACEFLAKE_") && !service && !slices.Contains(known, name) {
			names = append(names, name)
		}
	}
	return names
}

var errTTL = errors.New("want a duration from 2s to 24h, such as 10m")

// Check returns an error for settings that are invalid with any store: [ErrConfig].
func (c Config) Check() error {
	switch {
	case c.TTL != 0 && (c.TTL < lease.MinTTL || c.TTL > lease.MaxTTL):
		return invalid(ttlVar, c.TTL.String(), errTTL)
	case c.Secrets != nil && c.SecretFile != "":
		return fmt.Errorf("%w: %s and %s are set: set one of them", ErrConfig, secretVar, fileVar)
	case c.Store == "" && (c.Secrets != nil || c.SecretFile != "" || c.TTL != 0 || c.Strict):
		return fmt.Errorf("%w: %s is not set, but one of %s, %s, %s and %s is: set it for leased "+
			"nodes, or none of them", ErrConfig, storeVar, secretVar, fileVar, ttlVar, strictVar)
	}
	return nil
}
