package leasetest_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/memstore"
)

// The body of a test, func TestMyStore(t *testing.T), for your own store.
func ExampleRun() {
	var t *testing.T
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		s := new(memstore.Objects) // here: an empty database, a prefix …
		return leasetest.Storage{
			Server: "127.0.0.1:6379",
			Open:   func(address string) (driver.Objects, error) { return s, nil },
			Delete: func(name string) error {
				s.Set(map[string][]byte{name: nil}) // here: a DELETE …
				return nil
			},
		}
	})
}
