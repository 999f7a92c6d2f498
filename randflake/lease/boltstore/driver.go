package boltstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

func init() { driver.Register("bolt", openURL) }

// opened is a Store that holds nothing open, so there is nothing to close.
type opened struct{ *Store }

func (opened) Close() error { return nil }

// openURL is the [driver.Opener] of bolt:PATH. Node ranges are those of
// [WithNodes] and [WithBlockSize].
func openURL(_ context.Context, url string, nodes driver.NodeRange) (driver.Store, error) {
	path := strings.TrimPrefix(url, "bolt:")
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
