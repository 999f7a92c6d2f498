package rowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The checks of a store's creation, and of calls for operators.

// described fails tb unless a store describes itself as want.
func described(tb testing.TB, s driver.Store, want lease.Description) {
	tb.Helper()
	got, err := s.Describe(context.Background())
	if own, ok := s.(driver.Embedded); ok && err == nil {
		var codec *randflake.Codec
		if codec, err = own.Codec(context.Background()); err == nil {
			want.Secrets = []string{lease.Fingerprint(codec, want.ID)}
		}
	}
	got.Created, got.Raised, want.Created, want.Raised = got.Created.UTC(), got.Raised.UTC(), want.Created.UTC(), want.Raised.UTC()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		tb.Fatalf("describe: got %+v, %v; want %+v, as it was created", got, err, want)
	}
}

// create has several clients create a store at once, and again, as an operator who repeats the command.
func create(tb testing.TB, h Harness) {
	const n = 5
	ctx, t0 := context.Background(), start()
	for _, d := range []lease.Description{
		{},
		{First: 64, Nodes: 64, BlockSize: 16, LongestTTL: lease.MinTTL, Secrets: []string{"0123456789abcdef", "fedcba9876543210"}},
		{Nodes: few.Nodes, BlockSize: few.BlockSize, Raised: t0.Add(time.Minute)},
	} {
		storage := h.New(tb)
		var clients [n]driver.Store
		var all [n]lease.Description
		d.Created = t0
		for i := range clients {
			clients[i], all[i] = storage.Client(tb), filled(tb, d)
			all[i].ID = all[i%2].ID
		}
		createAll := func() []error {
			return atOnce(n, func(i int) error { return clients[i].Create(ctx, all[i]) })
		}
		errs := createAll()
		created := max(slices.Index(errs, nil), 0)
		for i, err := range errs {
			if same := all[i].ID == all[created].ID; same && err != nil || !same && !errors.Is(err, lease.ErrExists) {
				tb.Fatalf("creates at once, with two IDs in turn: %v; those with one of the IDs must succeed, and the others return %v: "+
					"two stores in one storage grant the same nodes", errs, lease.ErrExists)
			}
		}
		d = all[created]
		described(tb, clients[0], d)
		for i := range all { // the ID counts
			all[i].ID, all[i].First, all[i].Nodes, all[i].BlockSize, all[i].Raised = d.ID, 0, 8, 8, time.Time{}
		}
		if err := errors.Join(createAll()...); err != nil {
			tb.Errorf("creates of a store that exists, with its ID: %v", err)
		}
		described(tb, storage.Client(tb), d)
		if !d.Raised.IsZero() {
			if g, err := clients[0].Acquire(ctx, request(d.Raised.Add(-1), time.Minute)); !errors.Is(err, lease.ErrRaised) {
				tb.Errorf("acquire before %s, up to which another store may have granted leases: got %+v, %v; want %v", d.Raised, g, err, lease.ErrRaised)
			}
			h.caller(tb, d, clients[:]...).granted(request(d.Raised, time.Minute))
		}
	}
}

func badDescriptions(tb testing.TB, h Harness) {
	s := h.New(tb).Client(tb)
	for name, change := range map[string]func(*lease.Description){
		"unaligned nodes":             func(d *lease.Description) { d.First, d.Nodes = 4, 8 },
		"a TTL of two days":           func(d *lease.Description) { d.LongestTTL = 2 * lease.MaxTTL },
		"a secret, not a fingerprint": func(d *lease.Description) { d.Secrets = []string{"correct horse battery"} },
	} {
		d := filled(tb, lease.Description{})
		change(&d)
		if err := s.Create(context.Background(), d); !errors.Is(err, lease.ErrInvalidRequest) {
			tb.Errorf("create with %s: got error %v, want %v", name, err, lease.ErrInvalidRequest)
		}
	}
	if d, err := s.Describe(context.Background()); !errors.Is(err, lease.ErrNoStore) || d.ID != "" {
		tb.Errorf("describe after a Create that was refused: got %+v, %v; want %v", d, err, lease.ErrNoStore)
	}
}

// everyCall makes each call that needs a store, and returns the errors.
func everyCall(ctx context.Context, s driver.Store, g lease.Grant) map[string]error {
	_, describe := s.Describe(ctx)
	_, acquire := s.Acquire(ctx, request(start(), time.Minute))
	_, renew := s.Renew(ctx, g, request(start(), time.Hour))
	_, get := s.Get(ctx, g.Node)
	_, list := s.List(ctx)
	_, raise := s.Raise(ctx, start())
	return map[string]error{
		"describe": describe, "acquire": acquire, "renew": renew, "get": get, "list": list, "raise": raise,
		"release": s.Release(ctx, g, lease.NewNonce(), g.Start), "add secret": s.AddSecret(ctx, "0123456789abcdef"),
	}
}

// refused checks that every call of a client fails with one of some errors, twice.
func refused(tb testing.TB, when string, s driver.Store, g lease.Grant, want ...error) {
	tb.Helper()
	for range 2 {
		for call, err := range everyCall(context.Background(), s, g) {
			if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
				tb.Errorf("%s %s: got error %v, want %v: only Create creates a store", call, when, err, want)
			}
		}
	}
}

func noStore(tb testing.TB, h Harness) {
	refused(tb, "without a store", h.New(tb).Client(tb), lease.Grant{Lease: driver.RangeOf(few).Block(0).Lease, Nonce: lease.NewNonce(), Version: 1}, lease.ErrNoStore)
}

// replaced checks that a client of a store neither creates one after it was deleted nor uses the
// one that is created then.
func replaced(tb testing.TB, h Harness) {
	storage := h.New(tb)
	if storage.Delete == nil {
		return
	}
	storage.Create(tb, few)
	old := storage.Client(tb)
	g := h.caller(tb, few, old).granted(request(start(), time.Minute))
	if err := storage.Delete(); err != nil {
		tb.Fatalf("delete: %v", err)
	}
	refused(tb, "after the store was deleted", old, g, lease.ErrReplaced, lease.ErrNoStore)
	refused(tb, "after the store was deleted, of a new client,", storage.Client(tb), g, lease.ErrNoStore)
	d := storage.Create(tb, few)
	refused(tb, "of a client of the store before", old, g, lease.ErrReplaced)
	s := storage.Client(tb)
	described(tb, s, d)
	h.caller(tb, few, s).compare("calls of a client of the store before")
}

func secrets(tb testing.TB, h Harness) {
	const n = 6
	ctx, s := context.Background(), h.clients(tb, few, 1)[0]
	before, err := s.Describe(ctx)
	errs := atOnce(2*n, func(i int) error { return s.AddSecret(ctx, fmt.Sprintf("%016x", i%n)) })
	after, failed := s.Describe(ctx)
	if err := errors.Join(append(errs, err, failed)...); err != nil {
		tb.Fatalf("add secrets at once: %v", err)
	}
	added := slices.DeleteFunc(after.Secrets, func(s string) bool { return slices.Contains(before.Secrets, s) })
	if slices.Sort(added); len(added) != n || added[0] != fmt.Sprintf("%016x", 0) || added[n-1] != fmt.Sprintf("%016x", n-1) {
		tb.Errorf("%d secrets were added, each twice; now there are %q", n, added)
	}
	for _, bad := range []string{"", "0123456789abcde", "0123456789ABCDEF", "my secret"} {
		if err := s.AddSecret(ctx, bad); !errors.Is(err, lease.ErrInvalidRequest) {
			tb.Errorf("add the secret %q: got error %v, want %v", bad, err, lease.ErrInvalidRequest)
		}
	}
}

// raiseAgain checks that a raise which is repeated, or made by several operators at once, is one.
func raiseAgain(tb testing.TB, h Harness) {
	ctx, clients := context.Background(), h.clients(tb, few, 4)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var got [4]time.Time
	errs := atOnce(4, func(i int) (err error) {
		got[i], err = clients[i].Raise(ctx, until.Add(time.Duration(i)*time.Second))
		return err
	})
	again, err := clients[0].Raise(ctx, until.Add(time.Minute))
	other := slices.ContainsFunc(got[:], func(t time.Time) bool { return !t.Equal(again) })
	if err := errors.Join(append(errs, err)...); err != nil || other {
		tb.Fatalf("raises at once, and one more: to %s and %s, %v; want one time", got, again, err)
	}
	d, err := clients[0].Describe(ctx)
	blocks, failed := clients[0].List(ctx)
	lower := slices.ContainsFunc(blocks, func(b lease.Grant) bool { return b.Nonce != "" || !b.End.Equal(again) })
	if err != nil || failed != nil || !d.Raised.Equal(again) || len(blocks) != driver.RangeOf(few).Blocks() || lower {
		tb.Errorf("after a raise to %s: described as raised to %s (%v), and the blocks are %+v (%v)", again, d.Raised, err, blocks, failed)
	}
}

func closed(tb testing.TB, h Harness) {
	s := h.clients(tb, few, 1)[0]
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := s.Describe(ctx); err != nil {
		tb.Fatalf("describe: %v", err)
	}
	cancel()
	for range 2 {
		began := time.Now()
		err := s.Close(ctx)
		if took := time.Since(began); took > 2*time.Second || err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("close: %v after %s, although its context had ended", err, took)
		}
	}
}
