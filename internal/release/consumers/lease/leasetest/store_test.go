// Package store tests a store against the rule of package lease, as an author of a store does.
package store

import (
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestStore(t *testing.T) {
	leasetest.Run(t, leasetest.Harness{
		Volatile: true,
		New: func(testing.TB) leasetest.Open {
			var s *driver.Memory
			return func(nodes driver.NodeRange) (lease.Store, error) {
				if s == nil {
					s = driver.NewMemory(driver.WithNodeRange(nodes))
				}
				return s, nil
			}
		},
	})
}
