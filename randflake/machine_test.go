package randflake

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine is a Generator and a model of it. The model knows seconds and places in them, a place
// being a node's offset and a sequence number, but neither words nor bits.
type machine struct {
	*Generator
	*rapid.T
	clock *fakeClock
	start int64 // of the lease, like all seconds of the model a Unix time
	node  uint32
	room  int   // places of a second
	zero  place // would be encrypted to zero

	next   place // the first that is unused
	end    int64
	sealed bool
	drawn  uint64 // by withStart's function
}

type place struct {
	second int64
	at     int
}

func (p place) before(q place) bool {
	return p.second < q.second || p.second == q.second && p.at < q.at
}

// want returns where n IDs begin if the next place and the time are these, or why there are none.
func (m *machine) want(next place, n int, now time.Time) (place, error) {
	p, second := next, now.Unix()
	switch {
	case m.sealed:
		return p, ErrSealed
	case second < Epoch:
		return p, ErrBeforeEpoch
	case second >= EndOfLife:
		return p, ErrEndOfLife
	case second < m.start && next == place{m.start, 0}:
		return p, ErrLeaseNotStarted
	}
	if now := (place{second, 0}); !now.before(p) { // the first of this second
		p = place{second, int(m.drawn % uint64(m.room*7/8))}
	}
	if p.at+n > m.room {
		p = place{p.second + 1, 0}
	}
	bound := place{now.Add(2*time.Second).Unix() + 1, 0}
	switch {
	case p.second >= m.end:
		return p, ErrLeaseExpired
	case bound.before(p):
		return p, ErrClockBehind
	case p == bound || n > m.room:
		return p, ErrExhausted
	}
	return p, nil
}

// use takes n places from p on.
func (m *machine) use(p place, n int) {
	if m.next = (place{p.second, p.at + n}); m.next.at == m.room {
		m.next = place{p.second + 1, 0}
	}
}

// reserve takes n places as Fill does that has found this next place and time.
func (m *machine) reserve(next place, n int, now time.Time) (place, error) {
	for {
		p, err := m.want(next, n, now)
		switch {
		case err != nil:
			return p, err
		case next != m.next: // others were first
		case !m.zero.before(p) && m.zero.before(place{p.second, p.at + n}):
			m.use(m.zero, 1)
		default:
			m.use(p, n)
			return p, nil
		}
		next, now = m.next, m.clock.time()
	}
}

// fill generates n IDs. If meanwhile is set, the goroutine is stopped after it has read the clock.
func (m *machine) fill(n int, meanwhile func()) {
	next, now, ids := m.next, m.clock.time(), make([]ID, n)
	m.clock.meanwhile = meanwhile
	got, second, err := m.Fill(ids)
	m.clock.meanwhile = nil
	if n == 0 && err == nil {
		return
	}
	p, want := m.reserve(next, n, now)
	if !errors.Is(err, want) || want != nil && (got != 0 || !second.IsZero()) ||
		want == nil && (got != n || second.Unix() != p.second) {
		m.Fatalf("Fill of %d: %d, %v, %v; want second %d, %v", n, got, second, err, p.second,
			want)
	}
	if err != nil {
		return
	}
	for i := 0; i < n; i += 1 + (n-1-i)/100 {
		parts, at := m.codec.Decode(ids[i]), p.at+i
		if parts.Time.Unix() != p.second || parts.Node != m.node+uint32(at/perNode) ||
			parts.Sequence != uint32(at%perNode) {
			m.Fatalf("ID %d: %+v; want place %d of second %d", i, parts, at, p.second)
		}
	}
}

func (m *machine) seal() {
	m.Seal()
	m.sealed = true
}

// past returns the first second that no lease of these nodes has.
func (m *machine) past() int64 {
	if int64(m.room) == 1<<secondShift {
		return EndOfLife - 1
	}
	return EndOfLife
}

func (m *machine) extend(to time.Time) {
	var want error
	switch second := to.Unix(); {
	case second <= Epoch:
		want = ErrBeforeEpoch
	case second > EndOfLife:
		want = ErrEndOfLife
	case m.sealed:
		want = ErrSealed
	case second < m.end:
		want = errInvalidLease
	default:
		m.end = min(second, m.past())
	}
	if err := m.Extend(to); !errors.Is(err, want) {
		m.Fatalf("Extend to %v: %v, want %v", to, err, want)
	}
}

// move moves the clock, often to where something begins or ends.
func (m *machine) move() {
	if m.oneIn(5) {
		edge := draw(m.T, "edge", 0, Epoch, m.start, m.end, m.next.second-2, EndOfLife,
			m.start+1<<30)
		m.clock.nanos.Store(edge * int64(time.Second))
	}
	m.clock.add(draw(m.T, "step", 0, 1, -1, 300*time.Millisecond, time.Second, -time.Second,
		-2*time.Second, 3*time.Second, -5*time.Second))
}

func (m *machine) oneIn(n int) bool { return rapid.IntRange(1, n).Draw(m.T, "one in n") == n }

func draw[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

// A generator hands out the places of its lease one after the other, but for the one that would be
// encrypted to zero. It borrows up to two seconds, and refuses for the right reason, whatever the
// clock does and whatever others do while it is read.
func TestMachine(t *testing.T) {
	fixSeed(t)
	codec := newCodec(t, testSecret)
	rapid.Check(t, func(t *rapid.T) {
		nodes, zero := draw[uint32](t, "nodes", 1, 2, 8, MaxNode+1), codec.Decode(0)
		start := draw(t, "near", zero.Time, time.Unix(EndOfLife-1, 0)).
			Add(-draw(t, "before", 0, time.Second, 3*time.Second))
		m := &machine{T: t, clock: newClock(start), room: int(nodes) * perNode,
			start: start.Unix(), node: zero.Node &^ (nodes - 1), next: place{start.Unix(), 0}}
		m.zero = place{zero.Time.Unix(), int(zero.Node-m.node)*perNode + int(zero.Sequence)}
		// The lease's incomplete seconds are not used.
		part := time.Duration(rapid.IntRange(0, int(time.Second)-1).Draw(t, "part"))
		end := min(m.start+rapid.Int64Range(1, 6).Draw(t, "length"), EndOfLife)
		l := Lease{m.node, nodes, start.Add(-part), time.Unix(end, 0).Add(part)}
		if m.end = min(end, m.past()); m.end == m.start {
			return // no lease of all nodes has the last second
		}
		opts := []Option{nil, WithClock(m.clock.now)}
		started := rapid.Bool().Draw(t, "WithStart")
		if started {
			opts = append(opts, withStart(func() uint64 { return m.drawn }))
		}
		g, err := NewGenerator(codec, l, opts...)
		if err != nil {
			t.Fatal(err)
		}
		m.Generator = g
		room := min(m.room, 8*perNode)
		size := rapid.OneOf(rapid.IntRange(0, 600),
			rapid.SampledFrom([]int{room / 2, room - 1, room, room + 1}))
		places := rapid.OneOf(rapid.Uint64Range(uint64(m.zero.at)-50, uint64(m.zero.at)),
			rapid.Uint64Range(0, 2*uint64(m.room)))
		fill := func(*rapid.T) { m.fill(size.Draw(t, "n"), nil) }
		t.Repeat(map[string]func(*rapid.T){
			"Fill": fill, "Fill again": fill,
			"Fill to zero": func(*rapid.T) { // just before it, with it, and past it
				if n := m.zero.at - m.next.at + draw(t, "more", 0, 1, 2); 0 < n && n <= 600 {
					m.fill(n, nil)
				}
			},
			"jump": func(*rapid.T) { // to the lease's last places, or to just before zero
				to := draw(t, "to", place{m.end - 1, m.room - 3},
					place{m.zero.second, m.zero.at - 3})
				if m.oneIn(3) && !m.sealed && m.next.before(to) {
					m.next = to
					g.next.Store(g.space.word(uint64(to.second-Epoch)) + uint64(to.at))
				}
			},
			"clock": func(*rapid.T) {
				if m.move(); started {
					m.drawn = places.Draw(t, "drawn")
				}
			},
			"stopped": func(*rapid.T) {
				m.fill(rapid.IntRange(1, 300).Draw(t, "n"), func() {
					for range 1 + rapid.IntRange(0, 4).Draw(t, "fills") {
						fill(t)
						m.move()
					}
					if m.oneIn(5) {
						m.seal()
					}
				})
			},
			"Check": func(*rapid.T) {
				_, want := m.want(m.next, 1, m.clock.time())
				if err := m.Check(); !errors.Is(err, want) {
					t.Fatalf("Check: %v, want %v", err, want)
				}
			},
			"Extend": func(*rapid.T) {
				to := m.end + rapid.Int64Range(-1, 3).Draw(t, "to")
				if m.oneIn(10) {
					to = draw[int64](t, "far", 0, Epoch, EndOfLife, EndOfLife+1)
				}
				m.extend(time.Unix(to, 0).Add(part))
			},
			"Seal": func(*rapid.T) {
				if m.sealed || m.oneIn(10) {
					m.seal()
				}
			},
		})
	})
}

// fixSeed lets each run test the same inputs, except at night.
func fixSeed(t *testing.T) {
	seed := flag.Lookup("rapid.seed")
	if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" || seed.Value.String() != "0" {
		return
	}
	if err := seed.Value.Set("1"); err != nil {
		t.Fatal(err)
	}
}
