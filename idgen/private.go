package idgen

import (
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// private is the zero-configuration source. Its random secret is not known to any other process,
// so this process owns every node and every second.
type private struct {
	clock     randflake.Clock
	generator atomic.Pointer[randflake.Generator]
}

func newPrivate(c randflake.Clock) *private {
	p := &private{clock: c}
	p.generator.Store(p.fresh())
	return p
}

// Fill fails only while the clock is outside Randflake's time range. If the
// clock was stepped back by more than the generator tolerates, it draws a new
// secret: the IDs follow the clock, and collide with earlier ones only as
// random numbers would.
func (p *private) Fill(dst []randflake.ID) (n int, second time.Time, err error) {
	g := p.generator.Load()
	n, second, err = g.Fill(dst)
	if n == 0 && errors.Is(err, randflake.ErrClockBehind) || errors.Is(err, randflake.ErrExhausted) {
		p.generator.CompareAndSwap(g, p.fresh())
		n, second, err = p.generator.Load().Fill(dst)
	}
	return n, second, err
}

// renew draws a new secret, since a clone of this process has the current one.
func (p *private) renew() { p.generator.Store(p.fresh()) }

func (p *private) fresh() *randflake.Generator {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	codec, err := randflake.NewCodec(secret[:])
	if err != nil {
		panic(err) // the secret has the right length
	}
	g, err := randflake.NewGenerator(codec, everything, randflake.WithClock(p.clock), randflake.WithBorrow(hold))
	if err != nil {
		panic(err) // the lease is a constant
	}
	return g
}

// everything covers all of Randflake's nodes and time.
var everything = randflake.Lease{
	Nodes: randflake.MaxNode + 1,
	Start: time.Unix(randflake.Epoch, 0),
	End:   time.Unix(randflake.EndOfLife, 0),
}
