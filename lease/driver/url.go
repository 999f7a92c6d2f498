package driver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// ParseURL parses the URL of a package's store, scheme://host/path, which may have only these
// parameters. Its error contains form, not the URL, which may contain a password.
func ParseURL(pkg, text, form string, parameters ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || !strings.HasPrefix(text, u.Scheme+"://") {
		return nil, fmt.Errorf("%s: want %s", pkg, form)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if !slices.Contains(parameters, name) {
			return nil, fmt.Errorf("%s: unknown parameter %q, want %s", pkg, name, form)
		}
	}
	return u, nil
}
