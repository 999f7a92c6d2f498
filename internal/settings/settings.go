// Package settings reads the environment's settings, for package setup, whose Config has the same
// fields, and for the command, which overrides some of them. It is not part of setup, which would
// have to export what only the command needs.
package settings

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/lease"
)

// The names of the variables.
const (
	Store      = "TRACEFLAKE_STORE"
	SecretFile = "TRACEFLAKE_SECRET_FILE"
	TTL        = "TRACEFLAKE_TTL"
	Strict     = "TRACEFLAKE_STRICT"
)

// Settings are the settings of a process. docs/configuration.md describes them.
type Settings struct {
	Store      string // URL
	SecretFile string
	TTL        time.Duration
	Strict     bool
}

// ErrInvalid is returned if a setting is invalid.
var ErrInvalid = errors.New("fleet: bad configuration")

// Invalid returns an error that contains the invalid setting and wraps [ErrInvalid].
func Invalid(name, value string, err error) error {
	return fmt.Errorf("%w: %s=%s: %w", ErrInvalid, name, value, err)
}

// Read returns the settings in the environment; [Settings.Check] checks them. Empty variables count
// as unset. Unknown variables that begin with TRACEFLAKE_ are reported to [otel.Handle].
func Read() (Settings, error) {
	for _, name := range Unknown(os.Environ()) {
		otel.Handle(fmt.Errorf("fleet: the variable %s is not known and has no effect; "+
			"docs/configuration.md lists those that exist", name))
	}
	s := Settings{Store: os.Getenv(Store), SecretFile: os.Getenv(SecretFile)}
	var err error
	if text := os.Getenv(TTL); text != "" {
		if s.TTL, err = ParseDuration(text); err != nil || s.TTL == 0 {
			return Settings{}, Invalid(TTL, strconv.Quote(text), errTTL)
		}
	}
	if text := os.Getenv(Strict); text != "" {
		if s.Strict, err = strconv.ParseBool(text); err != nil {
			return Settings{}, Invalid(Strict, strconv.Quote(text), errors.New("want 1 or 0"))
		}
	}
	return s, nil
}

var errTTL = errors.New("want a duration from 2s to 24h, such as 10m")

// Check returns an error for settings that are invalid with any store: [ErrInvalid].
func (s Settings) Check() error {
	switch {
	case s.TTL != 0 && (s.TTL < lease.MinTTL || s.TTL > lease.MaxTTL):
		return Invalid(TTL, s.TTL.String(), errTTL)
	case s.Store != "":
		return nil
	}
	for _, variable := range []struct {
		name string
		set  bool
	}{
		{SecretFile, s.SecretFile != ""}, {TTL, s.TTL != 0}, {Strict, s.Strict},
	} {
		if variable.set {
			return fmt.Errorf("%w: %s is set, but %s is not: set both for leased nodes, or neither",
				ErrInvalid, variable.name, Store)
		}
	}
	return nil
}

var address = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)(?:[^?]*@)?([^?@]*)(?:\?[^@]*)?$`)

// Address returns the store's URL without parts that may be secret: user, password and parameters.
// It returns no part of a text that is not clearly a URL.
func (s Settings) Address() string {
	if parts := address.FindStringSubmatch(s.Store); parts != nil {
		return parts[1] + parts[2]
	}
	if s.Store == "" || strings.HasPrefix(s.Store, "file:") {
		return s.Store
	}
	return "…"
}
