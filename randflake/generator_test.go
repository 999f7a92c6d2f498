package randflake

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// base is a second of Randflake time.
var base = time.Unix(Epoch+1_000_000, 0).UTC()

const perNode = maxSequence + 1 // IDs of one node in one second

// fakeClock is a clock that tests move by hand, in both directions.
type fakeClock struct {
	nanos     atomic.Int64
	meanwhile func() // if set, the next reading returns late: meanwhile is called before it
}

func newClock(t time.Time) *fakeClock {
	c := new(fakeClock)
	c.nanos.Store(t.UnixNano())
	return c
}

func (c *fakeClock) add(d time.Duration) { c.nanos.Add(int64(d)) }

func (c *fakeClock) time() time.Time { return time.Unix(0, c.nanos.Load()) }

func (c *fakeClock) now() time.Time {
	now := c.time()
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return now
}

func lease(nodes uint32, d time.Duration) Lease {
	return Lease{Nodes: nodes, Start: base, End: base.Add(d)}
}

// testSecret's tuple that encrypts to zero is early in a sequence: see TestMachine.
const testSecret = "test secret 2539"

func newGenerator(t testing.TB, l Lease, opts ...Option) *Generator {
	t.Helper()
	g, err := NewGenerator(newCodec(t, testSecret), l, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLeaseIsCheckedFirst(t *testing.T) {
	end := base.Add(time.Minute)
	for says, l := range map[string]Lease{
		"0 nodes":              {Start: base, End: end},
		"3 nodes":              {Nodes: 3, Start: base, End: end},
		"262144 nodes":         {Nodes: 1 << 18, Start: base, End: end},
		"from node 4":          {Node: 4, Nodes: 8, Start: base, End: end},
		"from node 131072":     {Node: 1 << 17, Nodes: 1, Start: base, End: end},
		"no whole second from": {Nodes: 1, Start: base, End: base},
		"00.000000001Z": {Nodes: 1, Start: base.Truncate(time.Minute).Add(1),
			End: base.Truncate(time.Minute).Add(time.Second)},
		"start: randflake": {Nodes: 1},
		"past the end":     {Nodes: 1, Start: base, End: time.Unix(EndOfLife, 0).Add(time.Second)},
		"end: randflake":   {Nodes: 1, Start: base},
	} {
		g, err := NewGenerator(newCodec(t, testSecret), l)
		if g != nil || !errors.Is(err, errInvalidLease) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; want %q", l, err, says)
		}
	}
}

// Nil options are the defaults, and zero values refuse. TestZeroValues of package fleet calls every
// method of theirs.
func TestZeroValues(t *testing.T) {
	now := time.Now()
	g := newGenerator(t, Lease{Nodes: 1, Start: now.Add(-time.Second), End: now.Add(time.Hour)},
		nil, WithClock(nil))
	if id, err := g.Next(); id == 0 || err != nil {
		t.Errorf("%s, %v", id, err)
	}
	if n, _, err := new(Generator).Fill(make([]ID, 3)); n != 0 || !errors.Is(err, ErrNoLease) {
		t.Errorf("a zero Generator: %d, %v", n, err)
	}
	for _, c := range []*Codec{nil, {}} {
		g, err := NewGenerator(c, lease(1, time.Second))
		id, err2 := c.Encode(Parts{Time: now})
		if g != nil || id != 0 || !errors.Is(err, errNoSecret) || !errors.Is(err2, errNoSecret) {
			t.Errorf("without a secret: %v, %v; %v, %v", g, err, id, err2)
		}
		if one, other := c.Derive("x"), c.Derive("x"); c.Decode(1) != (Parts{}) || one == other {
			t.Error("without a secret it decodes, or its keys can be known")
		}
	}
}

// Goroutines that reserve at the same moment get different IDs, while the clock jumps in both
// directions and the end moves, and a reservation at the moment of Seal does not undo it.
func TestConcurrentUse(t *testing.T) {
	var readings atomic.Int64
	now := func() time.Time {
		n := readings.Add(1)
		return base.Add(time.Duration(n/2-n%3) * time.Second)
	}
	tries := 3_000
	if testing.Short() {
		tries = 500
	} else if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" {
		tries = 30_000
	}
	total := 0
	for range tries {
		readings.Store(4)
		l := lease(2, 20*365*24*time.Hour)
		g := newGenerator(t, l, WithClock(now))
		var got [2][]ID
		var wg sync.WaitGroup
		for w := range got {
			wg.Go(func() {
				for i := range 1_000 {
					ids := make([]ID, 1+i%3)
					n, _, err := g.Fill(ids)
					if got[w] = append(got[w], ids[:n]...); errors.Is(err, ErrSealed) {
						return
					}
				}
			})
		}
		for g.next.Load() == g.first {
			runtime.Gosched()
		}
		if err := g.Extend(l.End.Add(time.Second)); err != nil {
			t.Error(err)
		}
		g.Seal()
		wg.Wait()
		if err := g.Check(); !errors.Is(err, ErrSealed) {
			t.Fatal(err)
		}
		all := slices.Concat(got[:]...)
		slices.Sort(all)
		if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
			t.Fatalf("%d IDs, only %d distinct", len(all), n)
		}
		for _, id := range all {
			if p := g.codec.Decode(id); p.Time.Before(l.Start) || p.Node > 1 {
				t.Fatalf("%+v is outside of the lease", p)
			}
		}
		total += len(all)
	}
	if total < 2*tries {
		t.Errorf("%d IDs in %d tries", total, tries)
	}
}
