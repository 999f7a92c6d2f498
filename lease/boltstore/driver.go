package boltstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const scheme = "bolt"

func init() { driver.Register(scheme, openURL) }

// openURL is the [driver.Opener] of bolt:PATH. It refuses unsuitable uses of the
// file before the file is created.
func openURL(_ context.Context, url string, use driver.Options) (driver.Store, error) {
	path := strings.TrimPrefix(url, scheme+":")
	switch {
	case path == "":
		return nil, fmt.Errorf("boltstore: %w: no path in bolt:PATH", lease.ErrInvalidRequest)
	case use.Secret == driver.SharedSecret && use.Nodes.Nodes == 0:
		return nil, fmt.Errorf("boltstore: %w: a file serves one host, so with a fleet's secret this host needs nodes of its own; "+
			"reserve some for it, or use the file's own secret", lease.ErrInvalidRequest)
	}
	opts := []Option{WithMaxTTL(cmp.Or(use.LongestTTL, lease.DefaultTTL))}
	if use.Secret == driver.OwnSecret {
		opts = append(opts, WithOwnSecret())
	}
	if use.Existing {
		opts = append(opts, Existing())
	}
	return Open(path, use.Nodes, opts...)
}
