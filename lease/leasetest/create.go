package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if err != nil || !got.Created.Equal(want.Created) || !got.Raised.Equal(want.Raised) || !slices.Equal(got.Secrets, want.Secrets) ||
		got.ID != want.ID || got.First != want.First || got.Nodes != want.Nodes || got.BlockSize != want.BlockSize || got.LongestTTL != want.LongestTTL {
		tb.Fatalf("describe: got %+v, %v; want %+v, as it was created", got, err, want)
	}
}

func create(tb testing.TB, h Harness) {
	ctx, t0 := context.Background(), start()
	for _, d := range []lease.Description{
		{},
		{First: 64, Nodes: 64, BlockSize: 16, LongestTTL: time.Second, Secrets: []string{"0123456789abcdef", "fedcba9876543210"}},
		{Nodes: few.Nodes, BlockSize: few.BlockSize, Raised: t0.Add(time.Minute)},
	} {
		storage := h.New(tb)
		d = storage.Create(tb, d)
		s := storage.Client(tb)
		described(tb, s, d)
		other := d
		other.First, other.Nodes, other.BlockSize, other.Raised = 0, 8, 8, time.Time{}
		for range 2 { // as an operator who runs the command again
			if err := s.Create(ctx, other); err != nil {
				tb.Errorf("create of a store that exists, with its ID: %v", err)
			}
		}
		other.ID = lease.NewNonce()
		if err := s.Create(ctx, other); !errors.Is(err, lease.ErrExists) {
			tb.Errorf("create where another store is: got error %v, want %v", err, lease.ErrExists)
		}
		described(tb, storage.Client(tb), d)
		if !d.Raised.IsZero() {
			c := h.caller(tb, driver.RangeOf(d), s)
			if g, err := c.acquire(request(d.Raised.Add(-1), time.Minute)); !errors.Is(err, lease.ErrNoFreeNode) {
				tb.Errorf("acquire before %s, up to which another store may have granted leases: got %+v, %v; want %v", d.Raised, g, err, lease.ErrNoFreeNode)
			}
			c.granted(request(d.Raised, time.Minute))
		}
	}
	storage := h.New(tb)
	for name, change := range map[string]func(*lease.Description){
		"a short ID":                  func(d *lease.Description) { d.ID = d.ID[1:] },
		"an ID in upper case":         func(d *lease.Description) { d.ID = strings.Repeat("A", len(d.ID)) },
		"blocks of 3 nodes":           func(d *lease.Description) { d.BlockSize = 3 },
		"unaligned nodes":             func(d *lease.Description) { d.First, d.Nodes = 4, 8 },
		"too many nodes":              func(d *lease.Description) { d.Nodes *= 2 },
		"nodes that overflow":         func(d *lease.Description) { d.First, d.Nodes = 1<<31, 1<<31 },
		"no nodes":                    func(d *lease.Description) { d.Nodes = 0 },
		"a TTL of half a second":      func(d *lease.Description) { d.LongestTTL = time.Second / 2 },
		"a TTL of two days":           func(d *lease.Description) { d.LongestTTL = 2 * lease.MaxTTL },
		"a raise before the epoch":    func(d *lease.Description) { d.Raised = time.Unix(randflake.Epoch-1, 0) },
		"a secret, not a fingerprint": func(d *lease.Description) { d.Secrets = []string{"correct horse battery"} },
	} {
		d, err := filled(lease.Description{})
		if err != nil {
			tb.Fatal(err)
		}
		change(&d)
		s := storage.Client(tb)
		if err := s.Create(ctx, d); !errors.Is(err, lease.ErrInvalidRequest) {
			tb.Errorf("create with %s: got error %v, want %v", name, err, lease.ErrInvalidRequest)
		}
		missing(tb, s, "after a Create that was refused")
	}
}

// missing fails tb unless a storage has no store.
func missing(tb testing.TB, s driver.Store, when string) {
	tb.Helper()
	if d, err := s.Describe(context.Background()); !errors.Is(err, lease.ErrNoStore) || d.ID != "" {
		tb.Errorf("describe %s: got %+v, %v; want %v: only a successful Create creates a store", when, d, err, lease.ErrNoStore)
	}
}

// everyCall makes each call that needs a store, and returns the errors.
func everyCall(ctx context.Context, s driver.Store, g lease.Grant) map[string]error {
	_, describe := s.Describe(ctx)
	_, acquire := s.Acquire(ctx, request(start(), time.Minute))
	_, renew := s.Renew(ctx, g, renewal(lease.NewNonce(), start().Add(time.Hour)))
	_, get := s.Get(ctx, g.Node)
	_, list := s.List(ctx)
	_, raise := s.Raise(ctx, start())
	return map[string]error{
		"describe": describe, "acquire": acquire, "renew": renew, "get": get, "list": list, "raise": raise,
		"release": s.Release(ctx, g, lease.NewNonce(), g.Start), "add secret": s.AddSecret(ctx, "0123456789abcdef"),
	}
}

func noStore(tb testing.TB, h Harness) {
	storage, g := h.New(tb), lease.Grant{Lease: few.Block(0).Lease, Nonce: lease.NewNonce(), Version: 1}
	for call, err := range everyCall(context.Background(), storage.Client(tb), g) {
		if !errors.Is(err, lease.ErrNoStore) {
			tb.Errorf("%s without a store: got error %v, want %v", call, err, lease.ErrNoStore)
		}
	}
	missing(tb, storage.Client(tb), "after calls without a store")
}

// replaced checks that a client of a store neither creates one after it was deleted nor uses the
// one that is created then.
func replaced(tb testing.TB, h Harness) {
	storage := h.New(tb)
	if storage.Delete == nil {
		return
	}
	storage.Create(tb, Nodes(few))
	old := storage.Client(tb)
	g := h.caller(tb, few, old).granted(request(start(), time.Minute))
	if err := storage.Delete(); err != nil {
		tb.Fatalf("delete: %v", err)
	}
	for call, err := range everyCall(context.Background(), old, g) {
		if !errors.Is(err, lease.ErrNoStore) && !errors.Is(err, lease.ErrReplaced) {
			tb.Errorf("%s after the store was deleted: got error %v, want %v or %v", call, err, lease.ErrReplaced, lease.ErrNoStore)
		}
	}
	missing(tb, storage.Client(tb), "after the store was deleted: a deleted store is not a new one")
	d := storage.Create(tb, Nodes(few))
	for call, err := range everyCall(context.Background(), old, g) {
		if !errors.Is(err, lease.ErrReplaced) {
			tb.Errorf("%s of a client of the store before: got error %v, want %v", call, err, lease.ErrReplaced)
		}
	}
	s := storage.Client(tb)
	described(tb, s, d)
	if blocks, err := s.List(context.Background()); err != nil || len(blocks) > 0 {
		tb.Errorf("a client of the store before wrote %+v (%v)", blocks, err)
	}
}

func createAtOnce(tb testing.TB, h Harness) {
	const n = 6
	for _, same := range []bool{true, false} {
		storage := h.New(tb)
		var clients [n]driver.Store
		var all [n]lease.Description
		var errs [n]error
		var err error
		for i := range clients {
			clients[i] = storage.Client(tb)
			if all[i], err = filled(Nodes(few)); err != nil {
				tb.Fatal(err)
			}
			if same {
				all[i].ID = all[0].ID
			} else {
				all[i].BlockSize >>= i
			}
		}
		atOnce(n, func(i int) { errs[i] = clients[i].Create(context.Background(), all[i]) })
		created := 0
		for i, err := range errs {
			switch {
			case err == nil:
				created++
				d := all[i]
				d.Created = all[0].Created
				described(tb, clients[i], d)
			case same || !errors.Is(err, lease.ErrExists):
				tb.Errorf("%d creates at once, with one ID: %t: %v", n, same, err)
			}
		}
		if !same && created != 1 {
			tb.Errorf("of %d creates at once with different IDs, %d succeeded; want one: two stores in one storage grant the same nodes", n, created)
		}
	}
}

func secrets(tb testing.TB, h Harness) {
	storage := h.New(tb)
	storage.Create(tb, Nodes(few))
	ctx, s := context.Background(), storage.Client(tb)
	before, err := s.Describe(ctx)
	if err != nil {
		tb.Fatalf("describe: %v", err)
	}
	const n = 6
	var errs [2 * n]error
	atOnce(2*n, func(i int) { errs[i] = s.AddSecret(ctx, fmt.Sprintf("%016x", i%n)) })
	if err := errors.Join(errs[:]...); err != nil {
		tb.Fatalf("add secrets at once: %v", err)
	}
	after, err := storage.Client(tb).Describe(ctx)
	if err != nil || len(after.Secrets) != len(before.Secrets)+n {
		tb.Errorf("after %d secrets were added, each twice: got %q, %v; there were %q", n, after.Secrets, err, before.Secrets)
	}
	for i := range n {
		if fingerprint := fmt.Sprintf("%016x", i); !slices.Contains(after.Secrets, fingerprint) {
			tb.Errorf("the secret %s was added, and is gone: got %q", fingerprint, after.Secrets)
		}
	}
	for _, bad := range []string{"", "0123456789abcde", "0123456789ABCDEF", "my secret"} {
		if err := s.AddSecret(ctx, bad); !errors.Is(err, lease.ErrInvalidRequest) {
			tb.Errorf("add the secret %q: got error %v, want %v", bad, err, lease.ErrInvalidRequest)
		}
	}
}

func longestTTL(tb testing.TB, h Harness) {
	storage, ctx, t0 := h.New(tb), context.Background(), start()
	storage.Create(tb, lease.Description{LongestTTL: 10 * time.Second})
	s := storage.Client(tb)
	g, err := s.Acquire(ctx, request(t0, time.Minute))
	if err != nil || g.End.After(t0.Add(10*time.Second)) {
		tb.Fatalf("acquire for a minute, where the longest TTL is 10 s: granted %s to %s, %v", g.Start, g.End, err)
	}
	g, err = s.Renew(ctx, g, request(t0.Add(5*time.Second), time.Minute))
	if err != nil || !g.End.Equal(t0.Add(15*time.Second)) {
		tb.Errorf("renew 5 s later for a minute, where the longest TTL is 10 s: got an end %s after the start, %v", g.End.Sub(t0), err)
	}
}

// raiseAgain checks that a raise which is repeated, or made by two operators at once, is one.
func raiseAgain(tb testing.TB, h Harness) {
	ctx := context.Background()
	clients := h.clients(tb, few, 4)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var got [4]time.Time
	var errs [4]error
	atOnce(4, func(i int) { got[i], errs[i] = clients[i].Raise(ctx, until.Add(time.Duration(i)*time.Second)) })
	again, err := clients[0].Raise(ctx, until.Add(time.Minute))
	for i := range got {
		if errs[i] != nil || err != nil || !got[i].Equal(again) {
			tb.Fatalf("raises at once, and one more: to %s (%v) and %s (%v); want one time", got[i], errs[i], again, err)
		}
	}
	d, err := clients[0].Describe(ctx)
	if err != nil || !d.Raised.Equal(again) {
		tb.Errorf("describe after a raise to %s: %s, %v", again, d.Raised, err)
	}
	blocks, err := clients[0].List(ctx)
	if err != nil || len(blocks) != few.Blocks() {
		tb.Fatalf("list after a raise: %d blocks, %v; want all %d", len(blocks), err, few.Blocks())
	}
	for _, b := range blocks {
		if b.Nonce != "" || !b.End.Equal(again) {
			tb.Errorf("after a raise to %s: %+v", again, b)
		}
	}
}

func closed(tb testing.TB, h Harness) {
	storage := h.New(tb)
	storage.Create(tb, Nodes(few))
	s, err := storage.Open()
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	if _, err := s.Describe(context.Background()); err != nil {
		tb.Fatalf("describe: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 {
		began := time.Now()
		if err := s.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			tb.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			tb.Errorf("close took %s although its context had ended", took)
		}
	}
}
