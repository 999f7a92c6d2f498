package driver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/lease"
)

// ParseURL parses the URL of a package's store, scheme://host/path, which may have only these
// parameters. Its error wraps [lease.ErrInvalidRequest] and contains form, not the URL, which may
// contain a password.
func ParseURL(pkg, text, form string, parameters ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || !strings.HasPrefix(text, u.Scheme+"://") {
		return nil, BadURL(pkg, "want "+form)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if !slices.Contains(parameters, name) {
			return nil, BadURL(pkg, fmt.Sprintf("unknown parameter %q, want %s", name, form))
		}
	}
	return u, nil
}

// BadURL returns an error for the URL of a package's store. It does not contain the URL.
func BadURL(pkg, why string) error {
	return fmt.Errorf("%s: %w: the URL: %s", pkg, lease.ErrInvalidRequest, why)
}
