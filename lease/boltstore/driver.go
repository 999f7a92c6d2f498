package boltstore

import (
	"strings"

	"github.com/traceflake/traceflake/lease/driver"
)

const scheme = "bolt"

func init() { driver.Register(scheme, openURL) }

// openURL is the [driver.Opener] of bolt:PATH.
func openURL(url string) (driver.Store, error) {
	s, err := New(strings.TrimPrefix(url, scheme+":"))
	if err != nil {
		return nil, err
	}
	return s, nil
}
