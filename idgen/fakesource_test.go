package idgen

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

func newCodec(t testing.TB, secret string) *randflake.Codec {
	t.Helper()
	c, err := randflake.NewCodec([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const fleetSecret = "the fleet secret"

// newSource returns a leased generator: eight nodes for a day around noon.
func newSource(t testing.TB, now func() time.Time) *randflake.Generator {
	t.Helper()
	g, err := randflake.NewGenerator(newCodec(t, fleetSecret),
		randflake.Lease{Node: 64, Nodes: 8, Start: noon.Add(-12 * time.Hour),
			End: noon.Add(12 * time.Hour)},
		randflake.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var errRefused = errors.New("refused for a test")

// sourceFunc is a source, perhaps one that breaks the contract.
type sourceFunc func(dst []randflake.ID) (int, time.Time, error)

func (f sourceFunc) Fill(dst []randflake.ID) (int, time.Time, error) { return f(dst) }

// tagged is a source whose IDs are numbered; the upper 32 bits are its generation. Tests set the
// functions.
type tagged struct {
	clock      func() time.Time
	generation atomic.Uint64
	n          atomic.Uint64
	fills      atomic.Int64
	filled     func() // called after each Fill
}

func (s *tagged) Generation() uint64 { return s.generation.Load() }

func (s *tagged) OnRestore() { s.generation.Add(1) }

func (s *tagged) Fill(dst []randflake.ID) (int, time.Time, error) {
	generation, now := s.generation.Load(), s.clock()
	for i := range dst {
		dst[i] = randflake.ID(generation<<32 | s.n.Add(1))
	}
	s.fills.Add(1)
	if s.filled != nil {
		s.filled()
	}
	return len(dst), now.Truncate(time.Second), nil
}
