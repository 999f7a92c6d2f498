package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of a Keeper whose secret is not the store's.

// A Codec without a secret acquires nothing, since no generator would use the lease.
func TestCodecWithoutSecret(t *testing.T) {
	b := newBench(t)
	b.codec = &randflake.Codec{}
	b.pass(time.Minute)
	if n := len(b.store.asked("acquire")); n > 0 || b.Failure() == nil {
		t.Errorf("acquired %d times, and failed with %v", n, b.Failure())
	}
}

// When its secret is removed or the store's secret is replaced, the Keeper uses its lease to the
// end, without a renewal. Then it reads its secret again until that is the store's, without a
// restart.
func TestSecretIsChanged(t *testing.T) {
	next := must(randflake.NewCodec([]byte("the next secret!")))
	ctx, other := t.Context(), lease.Description{ID: lease.NewNonce()}
	if few.Fingerprint(next) == other.Fingerprint(next) {
		t.Error("two stores know a secret by one fingerprint")
	}
	for store, c := range map[string]struct {
		change  func(stores.Store) error
		reports []error
	}{
		few.ID: {func(s stores.Store) error {
			one := few.Fingerprint(testCodec)
			return errors.Join(s.AddSecret(ctx, few.ID, one),
				s.AddSecret(ctx, few.ID, few.Fingerprint(next)), s.RemoveSecret(ctx, few.ID, one))
		}, []error{lease.ErrWrongSecret}},
		other.ID: {func(s stores.Store) error {
			return s.Replace(ctx, few.ID, other.ID, other.Fingerprint(next))
		}, []error{lease.ErrReplaced, lease.ErrWrongSecret}},
	} {
		b := newHeld(t)
		if err := c.change(b.memory); err != nil {
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
		b.wantReports(c.reports...)
		asked := len(b.store.asked("acquire"))
		b.codec = nil
		b.pass(time.Minute)
		if n := len(b.store.asked("acquire")); n != asked || asked > 2 ||
			!errors.Is(b.Failure(), errAway) {
			t.Errorf("%d Acquires with a wrong secret, %d without one: %v", asked-1, n-asked,
				b.Failure())
		}
		b.codec = next
		b.pass(lease.MaxBackoff * 2)
		b.mustOne()
		if g := b.Term().Grant(); b.Codec() != next || g.Store != store {
			t.Errorf("the lease is of the store %s, want %s and its secret", g.Store, store)
		}
		b.wantReports(append(c.reports, lease.ErrRecovered)...)
		b.wantDrops()
	}
}
