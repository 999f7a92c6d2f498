package leasetest_test

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

func memory(opts ...lease.MemoryOption) leasetest.Harness {
	return leasetest.Harness{
		Volatile: true,
		New: func(testing.TB) leasetest.Open {
			var s *lease.Memory
			return func(nodes lease.NodeRange) (lease.Store, error) {
				if s == nil {
					s = lease.NewMemory(append(opts, lease.WithNodeRange(nodes))...)
				}
				return s, nil
			}
		},
	}
}

func TestMemory(t *testing.T) { leasetest.Run(t, memory()) }

func TestMemoryWithClock(t *testing.T) {
	h := memory(lease.WithStoreClock(time.Now))
	h.KnowsTime = true
	leasetest.Run(t, h)
}
