package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of a Keeper's first request, which compares secrets, and of its reports.

// A Keeper acquires nothing without a description of the store, nor before its secret is registered
// there.
func TestSecretIsCompared(t *testing.T) {
	b := newBench(t)
	d := lease.Description{ID: lease.NewNonce(), Nodes: few.Nodes, BlockSize: few.BlockSize,
		LongestTTL: lease.MaxTTL}
	d.Secrets = []string{"0123456789abcdef"}
	one, id := d.Fingerprint(testCodec), lease.NewNonce()
	if one == (lease.Description{ID: id}).Fingerprint(testCodec) ||
		id[:16] == d.ID[:16] || id[16:] == d.ID[16:] {
		t.Errorf("the stores %s and %s know a secret by one fingerprint, or their IDs are not "+
			"random", id, d.ID)
	}
	b.memory = memstore.New(d)
	b.store.Store = b.memory
	b.store.on = func(*call, func() (lease.Grant, error)) (lease.Grant, error) {
		return lease.Grant{}, errAway
	}
	b.pass(time.Second)
	b.wantReports(errAway) // once, until a lease is granted
	b.store.on = nil
	b.pass(time.Minute)
	b.wantError(lease.ErrNoLease)
	if err := b.Failure(); !errors.Is(err, lease.ErrWrongSecret) {
		t.Errorf("the failure is %v", err)
	}
	if n, asked := len(b.store.asked("acquire")), len(b.store.asked("describe")); n > 0 ||
		asked < 5 || asked > 80 {
		t.Errorf("%d Acquires and %d Describes in a minute", n, asked)
	}
	if err := b.memory.AddSecret(t.Context(), d.ID, one); err != nil {
		t.Fatal(err)
	}
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
}

// When its secret is removed, the Keeper uses its lease to the end, without a renewal. Then it
// reads its secret again until it is registered.
func TestSecretIsRemoved(t *testing.T) {
	b := newHeld(t)
	next := must(randflake.NewCodec([]byte("the next secret!")))
	one, other := few.Fingerprint(testCodec), few.Fingerprint(next)
	for _, secret := range []string{one, other} {
		if err := b.memory.AddSecret(t.Context(), few.ID, secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.memory.RemoveSecret(t.Context(), few.ID, one); err != nil {
		t.Fatal(err)
	}
	for end := b.Term().Grant().End; b.clock.Now().Before(end); b.pass(time.Second) {
		b.mustOne()
	}
	b.pass(time.Minute)
	b.wantError(randflake.ErrLeaseExpired)
	b.wantReports(lease.ErrWrongSecret)
	b.codec = next
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
	b.wantReports(lease.ErrWrongSecret, lease.ErrRecovered)
}

// When the store's secret is replaced, the Keeper uses its lease to the end. Then it reads its
// secret again until that is the store's, without a restart.
func TestSecretIsReplaced(t *testing.T) {
	b := newHeld(t)
	d := lease.Description{ID: lease.NewNonce()}
	next := must(randflake.NewCodec([]byte("the next secret!")))
	if err := b.memory.Replace(t.Context(), few.ID, d.ID, d.Fingerprint(next)); err != nil {
		t.Fatal(err)
	}
	for end := b.Term().Grant().End; b.clock.Now().Before(end); b.pass(time.Second) {
		b.mustOne()
		if b.Codec() != testCodec {
			t.Fatal("the secret was changed while a lease was held")
		}
	}
	b.pass(time.Minute)
	b.wantError(randflake.ErrLeaseExpired)
	b.wantReports(lease.ErrReplaced, lease.ErrWrongSecret)
	b.codec = next
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
	if g := b.Term().Grant(); b.Codec() != next || g.Store != d.ID {
		t.Errorf("the lease is of the store %s, want %s and its secret", g.Store, d.ID)
	}
	b.wantReports(lease.ErrReplaced, lease.ErrWrongSecret, lease.ErrRecovered)
	b.wantDrops(map[string]int64{})
}

// Close waits until reports are handled: a program that ends would lose them.
func TestCloseWaitsForReports(t *testing.T) {
	inTime(t, func(t *testing.T) {
		handled := false
		k := openTest(t, &fakeStore{Store: memstore.New(lease.Description{}), away: errAway},
			lease.WithErrorHandler(func(error) {
				time.Sleep(50 * time.Millisecond)
				handled = true
			}))
		synctest.Wait()
		if _ = k.Close(t.Context()); !handled {
			t.Error("a report was not handled")
		}
	})
}
