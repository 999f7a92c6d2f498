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
	if err := g.Check(); err != nil {
		t.Error(err)
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

// Many goroutines, a clock that jumps in both directions, a moving end and a Seal in the middle:
// all IDs differ, and none is later than Seal's result.
func TestConcurrentUse(t *testing.T) {
	l := lease(2, 20*time.Second)
	clock := newClock(base)
	g := newGenerator(t, l, WithClock(clock.now))
	got := make([][]ID, 2*runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for w := range got {
		wg.Go(func() {
			ids := make([]ID, 300)
			for i := 0; ; i++ {
				n, _, err := g.Fill(ids[:1+i%3*i%len(ids)])
				if errors.Is(err, ErrSealed) {
					return
				}
				got[w] = append(got[w], ids[:n]...)
			}
		})
	}
	for i := range 50 {
		clock.add(time.Duration((i%7)*200-500) * time.Millisecond)
		if err := g.Extend(l.End.Add(time.Duration(i) * time.Second)); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * time.Microsecond)
	}
	unused := g.Seal()
	wg.Wait()
	all := slices.Concat(got...)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) || n < 1000 {
		t.Errorf("%d IDs, only %d distinct", len(all), n)
	}
	for _, id := range all {
		if p := g.codec.Decode(id); !p.Time.Before(unused) || p.Time.Before(l.Start) || p.Node > 1 {
			t.Fatalf("%+v is outside of the lease, or not before %v", p, unused)
		}
	}
}

// No ID reserved is at or after the second that Seal returns, even if it was reserved at that
// moment: a lost reservation would be granted to another.
func TestSealWhileReserving(t *testing.T) {
	var seconds atomic.Int64
	now := func() time.Time { return base.Add(time.Duration(seconds.Add(1)) * time.Second) }
	tries := 3_000
	if testing.Short() {
		tries = 500
	} else if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" {
		tries = 100_000
	}
	for range tries {
		seconds.Store(0)
		g := newGenerator(t, lease(1, 20*365*24*time.Hour), WithClock(now))
		last := make(chan ID)
		go func() {
			var id ID
			// each in a second of its own
			for next, err := g.Next(); err == nil; next, err = g.Next() {
				id = next
			}
			last <- id
		}()
		for g.next.Load() == g.first {
			runtime.Gosched()
		}
		unused := g.Seal()
		if p := g.codec.Decode(<-last); !p.Time.Before(unused) {
			t.Fatalf("%+v was reserved, and Seal returned %v as unused", p, unused)
		}
	}
}
