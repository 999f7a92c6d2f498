package fleet

import (
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/randflake"
)

// Config holds the settings, for programs that do not use the environment. The zero Config is zero
// configuration.
type Config struct {
	Store      string        // URL
	SecretFile string        // path; for a store without a secret of its own
	TTL        time.Duration // 0: lease.DefaultTTL; a store grants no more than its longest TTL
	Strict     bool          // problems that retrying cannot solve are errors of Open

	MeterProvider metric.MeterProvider // of all metrics; nil: the global one. Env does not set it
}

// ErrConfig is returned if a setting is invalid. The text contains the variable and its value, and
// what to do.
var ErrConfig = settings.ErrInvalid

// Env returns the settings in the environment; [Config.Open] checks them. Empty variables count as
// unset. Unknown variables that begin with TRACEFLAKE_ are reported to otel.Handle. Errors:
// [ErrConfig].
func Env() (Config, error) {
	s, err := settings.Read()
	return Config{Store: s.Store, SecretFile: s.SecretFile, TTL: s.TTL, Strict: s.Strict}, err
}

func (c Config) settings() settings.Settings {
	return settings.Settings{Store: c.Store, SecretFile: c.SecretFile, TTL: c.TTL,
		Strict: c.Strict}
}

// LoadKeyring returns the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content. A file that every user of the machine
// can read is reported to otel.Handle.
func LoadKeyring(path string) (*randflake.Keyring, error) { return settings.LoadKeyring(path) }
