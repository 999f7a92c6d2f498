package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// call is a call of a store.
type call struct {
	op      string
	grant   lease.Grant   // of a get only its node
	request lease.Request // of a release only its nonce
	until   time.Time     // from which a release gives back, or to which a raise raises
}

func (c call) on(ctx context.Context, s stores.Store) (g lease.Grant, err error) {
	switch c.op {
	case "acquire":
		return s.Acquire(ctx, c.request)
	case "renew":
		return s.Renew(ctx, c.grant, c.request)
	case "release":
		err = s.Release(ctx, c.grant, c.request.Nonce, c.until)
	case "raise":
		_, err = s.Raise(ctx, c.until)
	case "add secret":
		err = s.AddSecret(ctx, "0123456789abcdef")
	case "get":
		return s.Get(ctx, c.grant.Node)
	}
	return g, err
}

// blocks is the state of a store by the rule of granting.
type blocks struct {
	about lease.Description
	all   []lease.Grant
}

func unwritten(d lease.Description) blocks {
	b := blocks{about: d}
	for i := range d.Blocks() {
		b.all = append(b.all, d.Block(i))
	}
	return b
}

// written returns the blocks that were ever written.
func (b blocks) written() (all []lease.Grant) {
	for _, one := range b.all {
		if one.Version > 0 {
			all = append(all, one)
		}
	}
	return all
}

// after returns the error that a call must have at a time of the store, if it has a clock, and
// changes the blocks accordingly. Which free block an Acquire takes is up to the store, which
// granted got.
func (b blocks) after(c call, got lease.Grant, now time.Time) (want lease.Grant, err error) {
	switch c.op {
	case "acquire":
		// A block that has the nonce is granted before any clock is looked at: its answer was lost.
		if err = engine.CheckRequest(c.request, time.Time{}); err == nil &&
			got.Nonce != c.request.Nonce {
			err = engine.CheckRequest(c.request, now)
		}
	case "renew":
		err = engine.CheckRequest(c.request, now)
	case "raise":
		if err = engine.CheckRaise(c.until); err == nil {
			for i := range b.all {
				b.all[i] = engine.RaiseBlock(b.all[i], c.until)
			}
		}
		return want, err
	}
	if err != nil {
		return want, err
	}
	r := engine.Shorten(c.request, b.about)
	if c.op == "acquire" {
		free := func(one lease.Grant) bool { return one.Free(r.Now) }
		i := slices.IndexFunc(b.all,
			func(one lease.Grant) bool { return one.Node == got.Node && got.Nodes > 0 })
		if i < 0 {
			i = slices.IndexFunc(b.all, free)
		}
		if i < 0 {
			return want, lease.ErrNoFreeNode
		}
		if b.all[i].Nonce == r.Nonce { // whose answer was lost
			return b.all[i], nil
		}
		granted, err := engine.AcquireBlock(b.all[i], r)
		if err == nil {
			b.all[i] = granted
		}
		return granted, err
	}
	i, err := b.about.Index(c.grant.Node)
	if err != nil {
		return want, err
	}
	one := b.all[i]
	switch c.op {
	case "renew":
		one, err = engine.RenewBlock(one, c.grant, r)
	case "release":
		one, err = engine.ReleaseBlock(one, c.grant, c.request.Nonce, c.until)
	}
	if err != nil {
		return want, err
	}
	if b.all[i] = one; c.op == "release" {
		return want, nil
	}
	return one, nil
}

// kinds are the errors of calls that have written nothing.
var kinds = []error{
	lease.ErrNoFreeNode, lease.ErrLost, lease.ErrInvalidRequest, lease.ErrClockAhead,
	randflake.ErrBeforeEpoch, randflake.ErrEndOfLife,
}

func kindOf(err error) error {
	if i := slices.IndexFunc(kinds, func(k error) bool { return errors.Is(err, k) }); i >= 0 {
		return kinds[i]
	}
	return err
}

// Random calls of clients in turn, good and bad ones, have the answers that the rule gives, and the
// store lists what it must have after each.
func TestRandomCalls(t *testing.T) {
	began := time.Now().Add(-6 * time.Hour).UTC().Truncate(time.Second)
	for seed, d := range []lease.Description{
		describe(lease.Description{Nodes: randflake.MaxNode + 1,
			BlockSize: (randflake.MaxNode + 1) / 4}),
		describe(lease.Description{First: 64, Nodes: 64, BlockSize: 8}),
		describe(lease.Description{First: randflake.MaxNode - 7, Nodes: 8, BlockSize: 8}),
		{ID: storeID, Created: t0, First: 5, Nodes: 3, BlockSize: 1, LongestTTL: 10 * time.Second},
	} {
		for _, clock := range []func() time.Time{nil, time.Now} {
			for _, perPage := range []uint32{1, 3, 64} {
				server := &counted{Objects: memstore.Objects{Clock: clock}}
				if err := client(server, perPage).Create(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				clients := []stores.Store{client(server, perPage), client(server, perPage),
					client(server, perPage)}
				have := unwritten(d)
				l := loader{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(perPage))), about: d,
					alone: true, seen: new(sync.Map)}
				for i := range 300 {
					c := l.next(i, began, have.all)
					var now time.Time
					if clock != nil {
						now = clock()
					}
					got, err := c.on(t.Context(), clients[i%3])
					before := slices.Clone(have.all)
					want, wantErr := have.after(c, got, now)
					if !errors.Is(err, kindOf(wantErr)) || err == nil && got != want {
						t.Fatalf("call %d, %+v: got %+v, %v; want %+v, %v; the blocks were %+v", i,
							c, got, err, want, wantErr, before)
					}
					listed, err := clients[(i+1)%3].List(t.Context())
					if err != nil || !slices.Equal(listed, have.written()) {
						t.Fatalf("after call %d, %+v: list: %+v, %v; want %+v", i, c, listed, err,
							have.written())
					}
					l.answered(got, err)
				}
			}
		}
	}
}

// loader generates random calls: acquires, and renewals and releases of a client's own and others'
// grants, including old versions.
type loader struct {
	*rand.Rand
	about     lease.Description
	alone     bool        // no other client calls the store: then some calls are bad or repeated
	seen      *sync.Map   // node → a grant seen for it
	mine, old lease.Grant // old is mine before its last change
	last      call
}

func pick[T any](l *loader, of ...T) T { return of[l.IntN(len(of))] }

// next returns a call of a client that is alone. Usually its time is about the soonest end of a
// block, at which it matters whether the block is free.
func (l *loader) next(i int, began time.Time, have []lease.Grant) call {
	now := began.Add(5 * time.Hour)
	for _, b := range have {
		if b.End.Before(now) {
			now = b.End
		}
	}
	if now.Before(began) {
		now = began
	}
	now = now.Add(pick(l, 0, 0, -1, -time.Second, 900*time.Millisecond, 20*time.Second, -time.Hour))
	switch {
	case i == 3: // when some blocks were never granted
		return call{op: "raise", until: now}
	case l.IntN(20) == 0:
		return call{op: "raise",
			until: pick(l, now, now.Add(40*time.Second), now.Add(20*time.Second-1),
				time.Time{}, time.Unix(randflake.Epoch-1, 0), time.Unix(randflake.EndOfLife+1, 0))}
	}
	return l.call(now)
}

// call returns a call that is no raise.
func (l *loader) call(now time.Time) call {
	c := call{grant: l.mine, until: now, request: lease.Request{
		Nonce: protocol.NewNonce(), Now: now,
		TTL: protocol.MinTTL + time.Duration(l.IntN(40))*time.Second/2,
	}}
	switch nodes := l.about; l.IntN(10) {
	case 0, 1:
		if other, ok := l.seen.Load(nodes.Block(l.IntN(nodes.Blocks())).Node); ok {
			c.grant = other.(lease.Grant)
		}
	case 2:
		c.grant = l.old
	case 3:
		c.grant.Version++
	}
	if l.alone {
		l.spoil(&c)
	}
	switch kind := l.IntN(10); {
	case l.alone && l.last.op != "" && kind == 0:
		return l.last // as in a repeated message
	case c.grant.Nonce == "" && !l.alone || kind < 4:
		if c.op = "acquire"; l.alone && l.IntN(5) == 0 {
			c.request.Nonce = l.old.Nonce // which has often been replaced
		}
	case kind < 7:
		c.op = "renew"
	case kind < 9:
		c.op = "release"
	default:
		c.op = "get"
	}
	l.last = c
	return c
}

// answered takes the answer of a call.
func (l *loader) answered(got lease.Grant, err error) {
	switch {
	case err == nil && got.Nonce != "":
		l.old, l.mine = l.mine, got
		l.seen.Store(got.Node, got)
	case errors.Is(err, lease.ErrLost) && l.IntN(2) == 0:
		l.mine = lease.Grant{}
	}
}

// spoil changes one argument of a call to an unusual or bad one.
func (l *loader) spoil(c *call) {
	g, r := &c.grant, &c.request
	r.Owner = pick(l, "", "a pod", strings.Repeat("é", 57)+", '; --\"\\") // the longest is valid
	switch l.IntN(24) {
	case 0, 1:
		r.Nonce = g.Nonce
	case 2:
		r.Nonce = pick(l, "", r.Nonce[1:], "ABCDEF0123456789ABCDEF0123456789",
			"'; DROP TABLE traceflake_leases;-")
	case 3:
		r.Owner = pick(l, strings.Repeat("x", 129), "\xff", "a\nb")
	case 4:
		r.TTL = pick(l, -time.Minute, protocol.MinTTL-1, lease.MaxTTL+1)
	case 5:
		r.TTL = lease.MaxTTL
	case 6, 16, 17:
		if g.Nodes == 0 {
			return // of two mistakes the store may report either
		}
		now := time.Now()
		r.Now = pick(l, time.Time{}, time.Unix(randflake.Epoch, -1),
			time.Unix(randflake.EndOfLife, 0),
			time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
			// These are valid, at least if the store has no clock.
			time.Unix(randflake.Epoch, 0), time.Unix(randflake.EndOfLife-1, 0),
			now.Add(23*time.Hour),
			now.Add(protocol.MaxClockAhead-20*time.Second),
			now.Add(protocol.MaxClockAhead+20*time.Second))
	case 7:
		r.Now = r.Now.In(time.FixedZone("", 5*3600))
	case 8:
		g.Nonce = pick(l, "", protocol.NewNonce())
	case 9:
		g.Version--
	case 10:
		g.Node = pick(l, g.Node+1, 1<<31, l.about.First,
			l.about.First+l.about.Nodes-l.about.BlockSize)
	case 11:
		g.Nodes /= 2
	case 12:
		g.Start, g.End, g.Owner = time.Time{}, time.Time{}, "" // which do not count
	case 13:
		c.until = pick(l, time.Time{}, g.Start, g.End.Add(time.Hour))
	case 14, 15:
		c.until = c.until.Add(-time.Duration(l.Int64N(int64(10 * time.Second))))
	}
}

// atOnce calls f for 0 to n-1, each call in its own goroutine, and returns the errors.
func atOnce(n int, f func(i int) error) []error {
	var all sync.WaitGroup
	ready, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		all.Go(func() {
			<-ready
			errs[i] = f(i)
		})
	}
	close(ready)
	all.Wait()
	return errs
}

// Secrets that operators add at once, each twice, are all there, once.
func TestAddSecretsAtOnce(t *testing.T) {
	const n = 6
	server := new(counted)
	s := open(server, 2, few(8))
	errs := atOnce(2*n, func(i int) error {
		return client(server, 2).AddSecret(context.Background(), fmt.Sprintf("%016x", i%n))
	})
	d, err := s.Describe(t.Context())
	slices.Sort(d.Secrets)
	if err := errors.Join(append(errs, err)...); err != nil || len(d.Secrets) != n ||
		d.Secrets[n-1] != fmt.Sprintf("%016x", n-1) {
		t.Errorf("%d secrets were added, each twice: %v; now there are %q", n, err, d.Secrets)
	}
	for _, bad := range []string{"", "0123456789abcde", "0123456789ABCDEF", "my secret"} {
		wantErr(t, "add the secret "+bad, s.AddSecret(t.Context(), bad), lease.ErrInvalidRequest)
	}
}

// A description that is invalid creates nothing.
func TestCreateRefusesDescriptions(t *testing.T) {
	for name, change := range map[string]func(*lease.Description){
		"unaligned nodes":   func(d *lease.Description) { d.First, d.Nodes = 4, 8 },
		"a TTL of two days": func(d *lease.Description) { d.LongestTTL = 2 * lease.MaxTTL },
		"a secret, not a fingerprint": func(d *lease.Description) {
			d.Secrets = []string{"correct horse battery"}
		},
	} {
		server, d := new(counted), describe(few(8))
		change(&d)
		wantErr(t, "create with "+name, client(server, 2).Create(t.Context(), d),
			lease.ErrInvalidRequest)
		if server.Writes > 0 {
			t.Errorf("create with %s wrote", name)
		}
	}
}

// A call whose context is over returns its error, and writes nothing.
func TestContextsThatAreOver(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		away := client(wire{server, func(*message, func() answer) answer {
			return answer{err: errLost}
		}}, 2)
		for _, s := range []stores.Store{s, away} {
			for _, call := range calls.OnBlocks(ctx, s, g, t0) {
				wantErr(t, call.Name, call.Err, ctx.Err())
			}
		}
	}
	if got, err := s.Get(t.Context(), g.Node); err != nil || got != g {
		t.Errorf("now the block is %+v, %v; want %+v", got, err, g)
	}
}
