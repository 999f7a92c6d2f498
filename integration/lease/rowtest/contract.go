package rowtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// calls makes random calls one after another, good and bad ones. A [caller] judges the answers.
func calls(tb testing.TB, h Harness) {
	t0 := start()
	for seed, d := range []lease.Description{
		few,
		Nodes(driver.NodeRange{First: 64, Nodes: 64, BlockSize: 8}),
		Nodes(driver.NodeRange{First: randflake.MaxNode - 7, Nodes: 8, BlockSize: 8}),
		{First: 5, Nodes: 3, BlockSize: 1, LongestTTL: 10 * time.Second},
	} {
		c := h.open(tb, d)
		l := loader{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), store: c, about: d, alone: true, seen: new(sync.Map)}
		for i := range 150 {
			// Usually the time is about the soonest end, at which it matters whether the block is free.
			now := t0.Add(5 * time.Hour)
			for _, b := range c.current() {
				if b.End.Before(now) {
					now = b.End
				}
			}
			if now.Before(t0) {
				now = t0
			}
			now = now.Add(pick(l, 0, 0, -1, -time.Second, 900*time.Millisecond, 20*time.Second, -time.Hour))
			switch {
			case i == 3: // when some blocks were never granted
				c.raise(now)
			case l.IntN(20) == 0:
				c.raise(pick(l, now, now.Add(40*time.Second), now.Add(20*time.Second-1), // fractions are rounded up
					time.Time{}, time.Unix(randflake.Epoch-1, 0), time.Unix(randflake.EndOfLife+1, 0)))
			default:
				l.call(context.Background(), now)
			}
		}
	}
}

// loader makes random calls: acquires, and renewals and releases of a client's own and others'
// grants, old versions included.
type loader struct {
	*rand.Rand
	store     lease.Store
	about     lease.Description
	alone     bool        // no other client calls the store: then some calls are bad or repeated
	seen      *sync.Map   // node → a grant seen for it
	mine, old lease.Grant // old is mine before its last change
	last      func() (lease.Grant, error)
}

func pick[T any](l loader, of ...T) T { return of[l.IntN(len(of))] }

func (l *loader) call(ctx context.Context, now time.Time) {
	g := l.mine
	r := lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: lease.MinTTL + time.Duration(l.IntN(40))*time.Second/2}
	unused := now
	switch nodes := driver.RangeOf(l.about); l.IntN(10) {
	case 0, 1:
		if other, ok := l.seen.Load(nodes.Block(l.IntN(nodes.Blocks())).Node); ok {
			g = other.(lease.Grant)
		}
	case 2:
		g = l.old
	case 3:
		g.Version++
	}
	if l.alone {
		l.spoil(&g, &r, &unused)
	}
	switch kind := l.IntN(10); {
	case l.alone && l.last != nil && kind == 0:
		// the last call again, as in a repeated message
	case g.Nonce == "" && !l.alone || kind < 4:
		if l.alone && l.IntN(5) == 0 {
			r.Nonce = l.old.Nonce // which has often been replaced
		}
		l.last = func() (lease.Grant, error) { return l.store.Acquire(ctx, r) }
	case kind < 7:
		l.last = func() (lease.Grant, error) { return l.store.Renew(ctx, g, r) }
	case kind < 9:
		l.last = func() (lease.Grant, error) { return lease.Grant{}, l.store.Release(ctx, g, r.Nonce, unused) }
	default:
		l.last = func() (lease.Grant, error) { return l.store.Get(ctx, g.Node) }
	}
	got, err := l.last()
	switch {
	case err == nil && got.Nonce != "":
		l.old, l.mine = l.mine, got
		l.seen.Store(got.Node, got)
	case errors.Is(err, lease.ErrLost) && l.IntN(2) == 0:
		l.mine = lease.Grant{}
	}
}

// spoil makes a call unusual or bad, in one way.
func (l *loader) spoil(g *lease.Grant, r *lease.Request, unused *time.Time) {
	r.Owner = pick(*l, "", "a pod", strings.Repeat("é", 57)+", '; --\"\\") // the longest is valid
	switch l.IntN(24) {
	case 0, 1:
		r.Nonce = g.Nonce
	case 2:
		r.Nonce = pick(*l, "", r.Nonce[1:], "ABCDEF0123456789ABCDEF0123456789", "'; DROP TABLE traceflake_leases;-")
	case 3:
		r.Owner = pick(*l, strings.Repeat("x", 129), "\xff", "a\nb")
	case 4:
		r.TTL = pick(*l, -time.Minute, lease.MinTTL-1, lease.MaxTTL+1)
	case 5:
		r.TTL = lease.MaxTTL
	case 6, 16, 17:
		if g.Nodes == 0 {
			return // of two mistakes the store may report either
		}
		now := time.Now()
		r.Now = pick(*l, time.Time{}, time.Unix(randflake.Epoch, -1), time.Unix(randflake.EndOfLife, 0),
			time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
			// These are valid, at least if the store has no clock.
			time.Unix(randflake.Epoch, 0), time.Unix(randflake.EndOfLife-1, 0), now.Add(23*time.Hour),
			now.Add(lease.MaxClockAhead-20*time.Second), now.Add(lease.MaxClockAhead+20*time.Second))
	case 7:
		r.Now = r.Now.In(time.FixedZone("", 5*3600))
	case 8:
		g.Nonce = pick(*l, "", lease.NewNonce())
	case 9:
		g.Version--
	case 10:
		g.Node = pick(*l, g.Node+1, 1<<31, l.about.First, l.about.First+l.about.Nodes-l.about.BlockSize)
	case 11:
		g.Nodes /= 2
	case 12:
		g.Start, g.End, g.Owner = time.Time{}, time.Time{}, "" // which do not count
	case 13:
		*unused = pick(*l, time.Time{}, g.Start, g.End.Add(time.Hour))
	case 14, 15:
		*unused = unused.Add(-time.Duration(l.Int64N(int64(10 * time.Second))))
	}
}

func cancelled(tb testing.TB, h Harness) {
	s := h.open(tb, few)
	g := s.granted(request(start(), time.Minute))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		for call, err := range everyCall(ctx, s.next(), g) {
			if !errors.Is(err, ctx.Err()) {
				tb.Errorf("%s: got error %v, want %v", call, err, ctx.Err())
			}
		}
	}
	s.compare("calls whose contexts are over")
}
