package leasetest_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/randflake"
)

func memory(opts ...driver.MemoryOption) leasetest.Harness {
	return leasetest.Harness{
		Volatile: true,
		New: func(testing.TB) leasetest.Open {
			var s *driver.Memory
			return func(nodes driver.NodeRange) (lease.Store, error) {
				if s == nil {
					s = driver.NewMemory(append(opts, driver.WithNodeRange(nodes))...)
				}
				return s, nil
			}
		},
	}
}

func TestMemory(t *testing.T) { leasetest.Run(t, memory()) }

func TestMemoryWithClock(t *testing.T) {
	h := memory(driver.WithClock(randflake.SystemClock{}))
	h.KnowsTime = true
	leasetest.Run(t, h)
}
