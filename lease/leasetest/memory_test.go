package leasetest_test

import (
	"testing"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/randflake"
)

func memory(opts ...driver.MemoryOption) leasetest.Harness {
	return leasetest.Harness{New: func(testing.TB) leasetest.Storage {
		s := driver.EmptyMemory(opts...)
		return leasetest.Storage{Open: func() (driver.Store, error) { return s, nil }}
	}}
}

func TestMemory(t *testing.T) { leasetest.Run(t, memory()) }

func TestMemoryWithClock(t *testing.T) {
	h := memory(driver.WithClock(randflake.SystemClock{}))
	h.KnowsTime = true
	leasetest.Run(t, h)
}
