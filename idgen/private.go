package idgen

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
)

// private is the zero-configuration source. Its random secret is not known to any other process, so
// this process owns every node and every second. Under one secret no ID repeats, because the word
// of its generator only grows.
//
// A copy of the process has the same secret. So the generator begins each second at a place that is
// drawn when the clock reaches the second: the IDs of a second are an arc of its 2^34 words, and
// two copies generate the same ID only if their arcs overlap.
type private struct {
	now       func() time.Time
	draw      func([]byte) // fills it with bytes that differ between copies of a machine
	generator atomic.Pointer[randflake.Generator]
}

func newPrivate(now func() time.Time, draw func([]byte)) *private {
	p := &private{now: now, draw: draw}
	p.renew()
	return p
}

// Fill fails only while the clock is outside Randflake's time range. If the clock was stepped back
// by more than the generator tolerates, it draws a new secret: the IDs follow the clock, and
// collide with earlier ones only as random numbers would.
func (p *private) Fill(dst []randflake.ID) (n int, second time.Time, err error) {
	g := p.generator.Load()
	n, second, err = g.Fill(dst)
	if n == 0 && errors.Is(err, randflake.ErrClockBehind) {
		p.generator.CompareAndSwap(g, p.fresh())
		n, second, err = p.generator.Load().Fill(dst)
	}
	return n, second, err
}

// renew draws a new secret. It is called when a copy of this process may have the old one.
func (p *private) renew() { p.generator.Store(p.fresh()) }

func (p *private) fresh() *randflake.Generator {
	var secret [16]byte
	p.draw(secret[:])
	codec, err1 := randflake.NewCodec(secret[:])
	g, err2 := randflake.NewGenerator(codec, everything, randflake.WithClock(p.now),
		layout.WithStart(func() uint64 { return drawn(p.draw) }).(randflake.Option))
	if err := errors.Join(err1, err2); err != nil {
		panic(err) // the secret has the right length, and the lease is a constant
	}
	return g
}

// drawn returns a random number.
func drawn(draw func([]byte)) uint64 {
	var b [8]byte
	draw(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// everything covers all nodes, and all of Randflake's time except its last second, which no lease
// of all nodes contains.
var everything = randflake.Lease{
	Nodes: randflake.MaxNode + 1,
	Start: time.Unix(randflake.Epoch, 0),
	End:   time.Unix(randflake.EndOfLife, 0),
}
