package idgen

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/randflake"
)

// refusals counts the calls that are served with random bits, and reports when that begins and
// ends. The source and the clock are reported separately: otherwise each call in which one of them
// works would end the trouble of the other.
type refusals struct {
	reasons    [len(reasons)]atomic.Int64
	fromSource trouble
	inRange    trouble
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
	if errors.Is(err, errClock) {
		r.inRange.begins(err)
	} else {
		r.fromSource.begins(err)
	}
}

// trouble is whether something fails. Its beginning and its end are reported once.
type trouble struct{ on atomic.Bool }

func (t *trouble) begins(err error) {
	if !t.on.Load() && t.on.CompareAndSwap(false, true) {
		otel.Handle(fmt.Errorf("idgen: IDs are random from now on: %w", err))
	}
}

func (t *trouble) ends() {
	if t.on.Load() && t.on.CompareAndSwap(true, false) {
		otel.Handle(errRecovered)
	}
}

var errRecovered = errors.New("idgen: IDs come from the source again")

// random generates random IDs. Until the kernel learns of a restore, its bytes are the same in all
// copies of a machine, and that is when leases are gone. So they are combined with a mask, which
// differs between copies once they have noticed the restore.
type random struct {
	kernel func() uint64
	mask   atomic.Uint64
}

// renew draws another mask.
func (r *random) renew(draw func([]byte)) { r.mask.Store(drawn(draw)) }

// id returns random bits that are not all zero.
func (r *random) id() randflake.ID {
	for {
		if id := randflake.ID(r.kernel() ^ r.mask.Load()); id != 0 {
			return id
		}
	}
}

func kernelBits() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
