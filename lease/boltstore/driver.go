package boltstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

const scheme = "bolt"

func init() { driver.Register(scheme, openURL) }

// openURL is the [driver.Opener] of bolt:PATH.
func openURL(_ context.Context, url string, use driver.Options) (driver.Store, error) {
	path := strings.TrimPrefix(url, scheme+":")
	if path == "" {
		return nil, fmt.Errorf("boltstore: %w: no path in bolt:PATH", lease.ErrInvalidRequest)
	}
	return Open(path, use)
}
