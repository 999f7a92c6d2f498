// Package store holds a store to the rule of package lease, as its author does.
package store

import (
	"testing"

	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

func TestStore(t *testing.T) {
	leasetest.Run(t, leasetest.Harness{
		Volatile: true,
		New: func(testing.TB) leasetest.Open {
			var s *lease.Memory
			return func(nodes lease.NodeRange) (lease.Store, error) {
				if s == nil {
					s = lease.NewMemory(lease.WithNodeRange(nodes))
				}
				return s, nil
			}
		},
	})
}
