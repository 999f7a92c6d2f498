package randflake

import (
	"errors"
	"math"
	"math/rand/v2"
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

func (c *fakeClock) now() time.Time {
	now := time.Unix(0, c.nanos.Load())
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return now
}

func lease(nodes uint32, d time.Duration) Lease {
	return Lease{Nodes: nodes, Start: base, End: base.Add(d)}
}

// checker is a generator that checks the guarantee for every ID added to it: it is inside the
// lease, and later than every ID before it.
type checker struct {
	*Generator
	t     testing.TB
	lease Lease
	last  uint64
	n     int
}

// testSecret's tuple that encrypts to zero is early in a sequence and in a second: see
// TestZeroIsSkipped.
const testSecret = "test secret 2539"

func newChecker(t testing.TB, l Lease, opts ...Option) *checker {
	t.Helper()
	g, err := NewGenerator(newCodec(t, testSecret), l, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &checker{Generator: g, t: t, lease: l}
}

func (c *checker) add(ids ...ID) {
	c.t.Helper()
	for _, id := range ids {
		if id == 0 {
			c.t.Fatal("the ID is zero")
		}
		p := c.codec.Decode(id)
		if p.Time.Before(c.lease.Start) || !p.Time.Before(c.lease.End) || p.Node < c.lease.Node ||
			p.Node >= c.lease.Node+c.lease.Nodes {
			c.t.Fatalf("ID %d: %+v is outside of %+v", c.n, p, c.lease)
		}
		raw := c.codec.decrypt(id)
		if c.n > 0 && raw <= c.last {
			c.t.Fatalf("ID %d: raw word %d follows %d", c.n, raw, c.last)
		}
		c.last = raw
		c.n++
	}
}

// one returns the next ID.
func (c *checker) one() ID {
	c.t.Helper()
	id, err := c.Next()
	if err != nil {
		c.t.Fatal(err)
	}
	c.add(id)
	return id
}

// rest takes 256 IDs at a time until there are no more, and returns the error that says so.
func (c *checker) rest() error {
	c.t.Helper()
	for ids := make([]ID, 256); ; {
		n, _, err := c.Fill(ids)
		if c.add(ids[:n]...); err != nil {
			return err
		}
	}
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

// Nil options are the defaults, and zero values refuse. TestZeroValues of package setup calls every
// method of theirs.
func TestZeroValues(t *testing.T) {
	now := time.Now()
	newChecker(t, Lease{Nodes: 1, Start: now.Add(-time.Second), End: now.Add(time.Hour)},
		nil, WithClock(nil)).one()
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

// A lease that starts or ends within a second loses that second.
func TestEveryRefusalHasItsError(t *testing.T) {
	l := Lease{
		Nodes: 1, Start: base.Add(-500 * time.Millisecond), End: base.Add(10900 * time.Millisecond),
	}
	for _, tt := range []struct {
		name string
		at   time.Time
		want error
	}{
		{"a clock of 1970", time.Unix(0, 0), ErrBeforeEpoch},
		{"the second before the epoch", time.Unix(Epoch-1, 0), ErrBeforeEpoch},
		{"the epoch", time.Unix(Epoch, 0), ErrLeaseNotStarted},
		{"in the second of the start", base.Add(-1), ErrLeaseNotStarted},
		{"the first moment", base, nil},
		{"the last moment", base.Add(10*time.Second - 1), nil},
		{"in the second of the end", base.Add(10 * time.Second), ErrLeaseExpired},
		{"the last second of Randflake time", time.Unix(EndOfLife-1, 0), ErrLeaseExpired},
		{"past the end of life", time.Unix(EndOfLife, 0), ErrEndOfLife},
		{"2^30 s after the lease", base.Add(1 << 30 * time.Second), ErrEndOfLife},
	} {
		g := newChecker(t, l, WithClock(newClock(tt.at).now))
		id, err := g.Next()
		n, second, err2 := g.Fill(make([]ID, 3))
		if refused := tt.want != nil; !errors.Is(err, tt.want) || !errors.Is(err2, tt.want) ||
			refused != (id == 0) || refused != (n == 0) || refused != second.IsZero() {
			t.Errorf("%s: %v, %v; %d, %v, %v; want %v", tt.name, id, err, n, second, err2, tt.want)
		}
	}
}

// A burst runs ahead of the clock up to the bound and never past the lease. Every ID until then is
// generated exactly once.
func TestBorrow(t *testing.T) {
	for _, tt := range []struct {
		nodes, length int           // of the lease, in seconds
		at            time.Duration // the clock's time after the lease's start
		seconds       int           // usable seconds
		want          error
	}{
		{1, 60, 0, 3, ErrExhausted},
		{2, 60, 999 * time.Millisecond, 3, ErrExhausted},
		{1, 60, time.Second, 3, ErrExhausted},
		{2, 3, 0, 3, ErrLeaseExpired},
		{1, 1, 0, 1, ErrLeaseExpired},
	} {
		l := lease(uint32(tt.nodes), time.Duration(tt.length)*time.Second)
		g := newChecker(t, l, WithClock(newClock(base.Add(tt.at)).now))
		err := g.rest()
		if !errors.Is(err, tt.want) || !errors.Is(g.Check(), tt.want) ||
			g.n != tt.seconds*tt.nodes*perNode {
			t.Errorf("%+v: %d IDs, then %v", tt, g.n, err)
		}
	}
}

func TestFill(t *testing.T) {
	clock := newClock(base.Add(time.Second))
	g := newChecker(t, lease(1, time.Minute), WithClock(clock.now))
	fill := func(size int, wantErr error, after time.Duration) {
		t.Helper()
		ids := make([]ID, size)
		// its other results when it refuses: TestEveryRefusalHasItsError
		n, second, err := g.Fill(ids)
		if !errors.Is(err, wantErr) || err == nil &&
			(n != size || size > 0 && !second.Equal(base.Add(after))) {
			t.Fatalf("Fill of %d: %d, %v, %v; want %v, %v", size, n, second, err, after, wantErr)
		}
		if g.add(ids[:n]...); n > 0 && (!g.codec.Decode(ids[0]).Time.Equal(second) ||
			!g.codec.Decode(ids[n-1]).Time.Equal(second)) {
			t.Fatalf("the IDs of a Fill of second %v are not of that second", second)
		}
	}
	fill(0, nil, 0)
	fill(1, nil, time.Second)
	fill(200, nil, time.Second) // more than one batch of blocks
	fill(perNode-200, nil, 2*time.Second)
	fill(perNode+1, ErrExhausted, 0) // longer than a second
	fill(200, nil, 2*time.Second)
	fill(perNode-1, nil, 3*time.Second)
	fill(2, ErrExhausted, 0) // nothing more may be borrowed
	fill(1, nil, 3*time.Second)
	fill(1, ErrExhausted, 0)
	clock.add(3 * time.Second)
	fill(perNode, nil, 4*time.Second) // a whole second
	g.Seal()
	fill(0, nil, 0)
}

// Known mistakes of other implementations: 31 071 duplicates when a busy second follows one that
// ended in the middle of its sequence, and 130 072 when the clock steps back one second after a
// rollover. A step back is held up to the bound; beyond it IDs are refused until the clock has
// caught up.
func TestBusySecondsAndAStepBack(t *testing.T) {
	for step, want := range map[time.Duration]error{
		time.Millisecond: ErrExhausted, time.Second: ErrExhausted, 2 * time.Second: ErrExhausted,
		2*time.Second + 1: ErrClockBehind, 30 * time.Second: ErrClockBehind,
	} {
		clock := newClock(base)
		g := newChecker(t, lease(1, time.Minute), WithClock(clock.now))
		// the last ID is the first of the borrowed second
		for _, busy := range []int{1000, perNode + 1, 0} {
			for range busy {
				g.one()
			}
			clock.add(time.Second)
		}
		clock.add(-step - time.Second)
		n := g.n
		if err := g.rest(); !errors.Is(err, want) || (g.n == n) != errors.Is(want, ErrClockBehind) {
			t.Errorf("back by %v: %d IDs, then %v", step, g.n-n, err)
		}
		clock.add(step + 5*time.Second)
		g.one()
	}
}

// Known mistake of other implementations: a goroutine that stalls between reading the clock and
// taking a sequence number repeats an ID.
func TestStallBetweenClockAndSequence(t *testing.T) {
	clock := newClock(base)
	g := newChecker(t, lease(1, time.Minute), WithClock(clock.now))
	g.one()
	clock.meanwhile = func() { // others continue for longer than may be borrowed
		for range 3 {
			for range perNode {
				g.one()
			}
			clock.add(2 * time.Second)
		}
		g.one()
	}
	g.one()
}

// A lease that begins at Seal's result repeats no ID, even within the same second. Seal may be
// called again.
func TestSeal(t *testing.T) {
	for _, tt := range []struct {
		ids      int
		at, want time.Duration
	}{
		{0, 0, 0}, {1, 0, time.Second}, {1, 5500 * time.Millisecond, 6 * time.Second},
		{perNode, 0, time.Second}, {perNode + 1, 0, 2 * time.Second},
	} {
		g := newChecker(t, lease(1, time.Minute), WithClock(newClock(base.Add(tt.at)).now))
		for range tt.ids {
			g.one()
		}
		first, again := g.Seal(), g.Seal()
		_, next := g.Next()
		extend := g.Extend(base.Add(time.Hour))
		if !first.Equal(base.Add(tt.want)) || !again.Equal(first) || !errors.Is(next, ErrSealed) ||
			!errors.Is(extend, ErrSealed) {
			t.Errorf("%+v: unused from %v, then %v; %v, %v", tt, first.Sub(base), again.Sub(base),
				next, extend)
		}
	}
}

func TestExtendOnlyGrows(t *testing.T) {
	clock := newClock(base.Add(time.Minute))
	g := newChecker(t, lease(1, time.Minute), WithClock(clock.now))
	for _, tt := range []struct {
		name string
		to   time.Time
		want error
		next error // of an ID afterwards
	}{
		{"an earlier end", base.Add(59 * time.Second), errInvalidLease, ErrLeaseExpired},
		{"the same end", base.Add(time.Minute), nil, ErrLeaseExpired},
		{"within a second", base.Add(60*time.Second + 999*time.Millisecond), nil, ErrLeaseExpired},
		{"a later end", base.Add(61 * time.Second), nil, nil},
		{"past the end of life", time.Unix(EndOfLife+1, 0), ErrEndOfLife, nil},
		{"1970", time.Unix(0, 0), ErrBeforeEpoch, nil},
		{"the end of life", time.Unix(EndOfLife, 0), nil, nil},
	} {
		err := g.Extend(tt.to)
		if _, next := g.Next(); !errors.Is(err, tt.want) || !errors.Is(next, tt.next) {
			t.Errorf("to %s: %v, then %v; want %v, then %v", tt.name, err, next, tt.want, tt.next)
		}
	}
}

// If Extend succeeds, the end is at least as late as requested, whatever others do meanwhile.
func TestConcurrentExtend(t *testing.T) {
	g := newChecker(t, lease(1, time.Second))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100_000 {
				end := base.Add(time.Duration(next.Add(1)) * time.Second)
				if g.Extend(end) == nil && g.space.second(g.end.Load()).Before(end) {
					t.Errorf("extended to %v, but the end is before it", end)
				}
			}
		})
	}
	wg.Wait()
}

// At the end of life nothing wraps, whether with one node or with all, whose last second is not
// used.
func TestEndOfLife(t *testing.T) {
	end := time.Unix(EndOfLife, 0).UTC()
	for nodes, last := range map[uint32]time.Time{
		1: end.Add(-time.Second), MaxNode + 1: end.Add(-2 * time.Second),
	} {
		l := Lease{Node: MaxNode + 1 - nodes, Nodes: nodes, Start: end.Add(-10 * time.Second),
			End: end}
		clock := newClock(l.Start)
		g := newChecker(t, l, WithClock(clock.now))
		for ; !clock.now().After(last); clock.add(100 * time.Millisecond) {
			g.one()
		}
		if got := timeOf(g.last >> secondShift); !got.Equal(last) {
			t.Errorf("%d nodes: the time of the last ID is %v", nodes, got)
		}
		// The very last words, one by one, and none after them.
		g.next.Store(g.end.Load() - 3)
		for range 3 {
			g.one()
		}
		for ; clock.now().Before(end.Add(3 * time.Second)); clock.add(time.Second) {
			if id, err := g.Next(); err == nil {
				t.Errorf("%d nodes, past the last word: %v", nodes, id)
			}
		}
		if got := g.Seal(); got.After(end) {
			t.Errorf("unused from %v", got)
		}
	}
}

// A clock may decide that the lease must not be used any more: no ID is generated from a reading
// during which the generator was sealed, and Check reports that.
func TestClockSeals(t *testing.T) {
	for name, use := range map[string]func(g *Generator) error{
		"Next":  func(g *Generator) error { _, err := g.Next(); return err },
		"Fill":  func(g *Generator) error { _, _, err := g.Fill(make([]ID, 3)); return err },
		"Check": (*Generator).Check,
	} {
		clock := newClock(base)
		g := newChecker(t, lease(1, time.Minute), WithClock(clock.now))
		g.one()
		clock.add(700 * time.Millisecond)
		clock.meanwhile = func() { g.Seal() }
		if err := use(g.Generator); !errors.Is(err, ErrSealed) ||
			!g.Seal().Equal(base.Add(time.Second)) {
			t.Errorf("%s: %v, unused from %s", name, err, g.Seal())
		}
	}
}

// The one tuple that encrypts to zero is skipped, and no other that Next reaches. A Fill that
// contains it also skips those before it.
func TestZeroIsSkipped(t *testing.T) {
	c := newCodec(t, testSecret)
	p := c.Decode(0)
	const before = 5
	for _, nodes := range []uint32{1, 8, MaxNode + 1} {
		first, clock := p.Node&^(nodes-1), newClock(p.Time)
		// begin returns a generator that begins a little before the place of the zero tuple, which
		// must be in the first seven eighths of the second's space.
		begin := func(node uint32) *checker {
			return newChecker(t, Lease{Node: node % (MaxNode + 1), Nodes: nodes, Start: p.Time,
				End: p.Time.Add(2 * time.Second)},
				WithClock(clock.now), WithStart(func() uint64 {
					return uint64(p.Node-first)<<sequenceBits | uint64(p.Sequence-before)
				}))
		}
		// the latter does not have the tuple, or is the same
		for _, node := range []uint32{first, first ^ nodes} {
			g := begin(node)
			for i := range uint32(2 * before) {
				want := p.Sequence - before + i
				if node%(MaxNode+1) == first && want >= p.Sequence {
					want++
				}
				if id := g.one(); c.Decode(id).Sequence != want {
					t.Errorf("%d nodes from %d, ID %d: %+v, want sequence %d", nodes, node, i,
						c.Decode(id), want)
				}
			}
		}
		fill := func(g *checker, n int) {
			ids := make([]ID, n)
			if n, _, err := g.Fill(ids); n != len(ids) || err != nil {
				t.Fatalf("%d nodes, Fill of %d: %d, %v", nodes, len(ids), n, err)
			}
			g.add(ids...)
		}
		for _, size := range []int{before, before + 1, 256} {
			g := begin(first)
			fill(g, size)
			fill(g, size)
		}
		// A goroutine that stalls just before the tuple must not undo what others reserved in the
		// meantime.
		g := begin(first)
		clock.meanwhile = func() { fill(g, before); fill(g, 10) }
		fill(g, 10)
	}
}

// With a clock that steps, pauses and runs in any way, every ID is later than the one before and
// inside the lease.
func TestRandomClockWalks(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		nodes := uint32(1) << r.IntN(4)
		clock := newClock(base.Add(time.Duration(r.IntN(4000)-2000) * time.Millisecond))
		g := newChecker(t, Lease{Node: nodes * uint32(r.IntN(1000)), Nodes: nodes, Start: base,
			End: base.Add(time.Duration(1+r.IntN(60)) * time.Second)}, WithClock(clock.now))
		for range 200 {
			switch r.IntN(7) {
			case 0:
				clock.add(time.Duration(r.IntN(6000)-3000) * time.Millisecond)
			case 1:
				clock.add(time.Duration(r.IntN(100)) * time.Microsecond)
			case 2, 3, 4:
				ids := make([]ID, 1+r.IntN(2)*r.IntN(3000))
				n, _, _ := g.Fill(ids)
				g.add(ids[:n]...)
			case 5: // most of the rest of the second
				word, room := g.next.Load(), g.space.room
				g.next.Store(word + (room-word%room)*uint64(r.IntN(1000))/1000)
			case 6:
				end := g.lease.End.Add(time.Duration(r.IntN(20)) * time.Second)
				if r.IntN(6) == 0 && g.Extend(end) == nil {
					g.lease.End = end
				}
			}
		}
		if unused := g.Seal(); g.n > 0 && !unused.After(timeOf(g.last>>secondShift)) {
			t.Fatalf("seed %d: unused from %v, but the last ID's second is %v", seed, unused,
				timeOf(g.last>>secondShift))
		}
	}
}

// Many goroutines, a clock that jumps in both directions, a moving end and a Seal in the middle:
// all IDs differ, and none is later than Seal's result.
func TestConcurrentUse(t *testing.T) {
	l := lease(2, 20*time.Second)
	clock := newClock(base)
	g := newChecker(t, l, WithClock(clock.now))
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

// With a start, the IDs of each second are one arc, which begins at the place that is drawn when
// the clock reaches the second, and has an eighth of the space; words grow all the same.
func TestStart(t *testing.T) {
	const room = 2 * perNode
	l := lease(2, time.Minute)
	for _, drawn := range []uint64{0, 1, room / 2, room*7/8 - 1, room * 7 / 8, math.MaxUint64} {
		clock := newClock(base)
		draws := 0
		g := newChecker(t, l, WithClock(clock.now),
			WithStart(func() uint64 { draws++; return drawn }))
		for second := range 3 {
			want := drawn % (room * 7 / 8)
			for n := range uint64(room / 8) {
				id := g.one()
				if p := g.codec.Decode(id); uint64(p.Node)<<17|uint64(p.Sequence) != want+n ||
					!p.Time.Equal(clock.now().UTC()) {
					t.Fatalf("second %d, ID %d from %d: %+v", second, n, want, p)
				}
			}
			if draws != second+1 {
				t.Errorf("%d draws in %d seconds", draws, second+1)
			}
			clock.add(-time.Second)
			if g.one(); draws != second+1 {
				t.Error("a held second was drawn again")
			}
			clock.add(2 * time.Second)
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
		g := newChecker(t, lease(1, 20*365*24*time.Hour), WithClock(now))
		last := make(chan ID)
		go func() {
			id := g.one()
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
