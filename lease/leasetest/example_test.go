package leasetest_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// The body of a test, func TestMyStore(t *testing.T), for your own store.
func ExampleRun() {
	var t *testing.T
	leasetest.Run(t, func(testing.TB) leasetest.Storage {
		s := new(driver.Memory) // here: an empty database, a prefix, a folder …
		return leasetest.Storage{
			Open:   func() (driver.Objects, error) { return s, nil },
			Delete: func(name string) error { s.Delete(name); return nil },
		}
	})
}
