package lease

import (
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// Clock provides the times that a [Keeper] uses: Now is the wall clock, Elapsed the time since some
// fixed moment on a clock that is never stepped.
type Clock interface {
	randflake.Clock
	Elapsed() time.Duration
}

type systemClock struct{ randflake.Clock }

var processStart = time.Now()

func (systemClock) Elapsed() time.Duration { return time.Since(processStart) }
