package idgen

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/traceflake/traceflake/internal/reports"
)

// refusals counts the calls that are served with random bits, and reports when that begins and
// ends. The source and the clock are reported separately: otherwise each call in which one of them
// works would end the outage of the other.
type refusals struct {
	reasons             [len(reasons)]atomic.Int64
	fromSource, inRange outage
}

// Fallbacks returns how many calls have been served with random bits.
func (g *Generator) Fallbacks() (n int64) {
	for i := range g.refusals.reasons {
		n += g.refusals.reasons[i].Load()
	}
	return n
}

// add counts a refusal, and reports it if it is the first in a row.
func (r *refusals) add(err error) {
	r.reasons[reason(err)].Add(1)
	o := &r.fromSource
	if errors.Is(err, errClock) {
		o = &r.inRange
	}
	o.set(true, err)
}

// outage is a period in which the source or the clock cannot be used. Its beginning and its end
// are reported once.
type outage struct {
	on       atomic.Bool
	changing sync.Mutex
	reports  reports.Queue
}

// set begins an outage, because of err, or ends it.
func (o *outage) set(on bool, err error) {
	if o.on.Load() == on {
		return
	}
	o.changing.Lock() // reports are in the order of the changes
	defer o.changing.Unlock()
	switch changed := o.on.Swap(on) != on; {
	case changed && on:
		o.reports.Add(fmt.Errorf("idgen: falling back to random IDs: %w", err))
	case changed:
		o.reports.Add(errRecovered)
	}
}

var errRecovered error = reports.Recovered("idgen: recovered: IDs are no longer random")
