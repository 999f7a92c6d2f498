package boltstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const scheme = "bolt"

func init() { driver.Register(scheme, openURL) }

// opened is a Store opened by URL. It keeps nothing open, so there is nothing
// to close.
type opened struct{ *Store }

func (opened) Close() error { return nil }

// CheckUse refuses unsuitable uses of the file of a URL before the file is
// created: a fleet's secret needs nodes that are reserved for this host, and no
// grant is longer than [lease.DefaultTTL]. It accepts URLs of other stores.
// Errors: [lease.ErrInvalidRequest].
func CheckUse(url string, nodes driver.NodeRange, fleetSecret bool, ttl time.Duration) error {
	switch {
	case !strings.HasPrefix(url, scheme+":"):
		return nil
	case fleetSecret && nodes.Nodes == 0:
		return fmt.Errorf("boltstore: %w: a file serves one host, so with a fleet's secret this host needs nodes of its own; "+
			"reserve some for it, or use the file's own secret", lease.ErrInvalidRequest)
	case ttl > lease.DefaultTTL:
		return fmt.Errorf("boltstore: %w: a TTL of %s is more than the %s that a file grants",
			lease.ErrInvalidRequest, ttl, lease.DefaultTTL)
	}
	return nil
}

// openURL is the [driver.Opener] of bolt:PATH. Node ranges are those of
// [WithNodes] and [WithBlockSize].
func openURL(_ context.Context, url string, nodes driver.NodeRange) (driver.Store, error) {
	path := strings.TrimPrefix(url, scheme+":")
	if path == "" {
		return nil, fmt.Errorf("boltstore: %w: no path in bolt:PATH", lease.ErrInvalidRequest)
	}
	var opts []Option
	if nodes.BlockSize > 0 {
		opts = append(opts, WithBlockSize(int(nodes.BlockSize)))
	}
	if nodes.Nodes > 0 {
		opts = append(opts, WithNodes(int(nodes.First), int(nodes.Nodes)))
	}
	s, err := Open(path, opts...)
	if err != nil {
		return nil, err
	}
	return opened{s}, nil
}
