package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// begin begins a history of the store that was opened last, under the last of some secrets.
func begin(ctx context.Context, secrets string) (lease.Description, error) {
	d, err := opened.Store.Describe(ctx)
	if err != nil {
		return d, err
	}
	k := keyring(secrets)
	return opened.Begin(ctx, lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey,
		Now: time.Now(), Secrets: k, Secret: k.Codecs()[len(k.Codecs())-1], Known: d.Histories()})
}

// Another secret is added to the file, and then a history begins under it, or its begin is
// interrupted: the process uses its lease to the end and switches without a restart, and verifies
// the IDs of both.
func TestRekey(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		path := file(t, secret)
		if err := os.Chmod(path, 0o604); err != nil {
			t.Fatal(err)
		}
		inBubble(t, func(t *testing.T) {
			reports := reportstest.Collect(t)
			ids := open(t, fleet.Config{Store: "fleet-test://host", SecretFile: path,
				TTL: 10 * time.Second})
			before, _ := ids.NewIDs(t.Context())
			const both = secret + "\n" + other
			if err := os.WriteFile(path, []byte(both), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opened.server.OnWrite(func(name string) {
				if interrupted && strings.HasPrefix(name, "page-") {
					cancel()
				}
			})
			_, err := begin(ctx, both)
			if interrupted != errors.Is(err, context.Canceled) || !interrupted && err != nil {
				t.Fatal(err)
			}
			opened.server.OnWrite(nil)
			time.Sleep(time.Minute)
			after, _ := ids.NewIDs(t.Context())
			for secret, id := range []trace.TraceID{after, before} {
				if info := traceid.Inspect(ids.Keyring(), id); !info.Agree ||
					info.Secret != secret || !ids.Verifier().Verify(id) {
					t.Errorf("an ID is of key %d, want %d", info.Secret, secret)
				}
			}
			d, err := opened.Describe(t.Context())
			if d.Secret != d.Fingerprint(keyring(other).Codec()) || d.Reason != lease.Rekey {
				t.Errorf("the history is not under the new secret, but %+v: %v", d.History, err)
			}
			// What is said of the file is said once.
			said := fmt.Sprint(reports())
			if n := strings.Count(said, "every user"); n != 1 && runtime.GOOS != "windows" {
				t.Errorf("%d warnings of the file's mode: %s", n, said)
			}
			// The file is not needed for another history under the same secret.
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if _, err := begin(t.Context(), both); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			ids.NewIDs(t.Context())
			if err := ids.Ready(t.Context()); ids.Fallbacks() > 0 || err != nil {
				t.Errorf("%d fallbacks, %v", ids.Fallbacks(), err)
			}
		})
	}
}

// leasedID returns an ID of a history as a process with its secret generates it.
func leasedID(t *testing.T, d lease.Description) trace.TraceID {
	t.Helper()
	codec, err := d.Codec(keyring(secret))
	low, err2 := codec.Encode(randflake.Parts{Time: time.Now()})
	id, err3 := traceid.New(time.Now(), 0, low)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return id
}

// An ID of a history that others have begun makes a verifier read the description, in the
// background and at most once in five seconds. What it has learnt it does not forget, even if the
// store does. Old IDs cause no request.
func TestVerifierLearns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		v := open(t, fleet.Config{Store: "fleet-test://host",
			Secrets: keyring(secret)}).Verifier()
		first, err := opened.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		d, err := begin(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		verify := func(id trace.TraceID) bool {
			defer synctest.Wait()
			return v.Verify(id)
		}
		before, foreign := opened.described.Load(), leasedID(t, first)
		foreign[15]++
		verify(traceid.Min(time.Now().Add(-time.Hour)))
		if n := opened.described.Load(); n != before {
			t.Errorf("an old ID made it read %d descriptions", n-before)
		}
		if id := leasedID(t, d); verify(id) || !verify(id) {
			t.Error("it is not verified at once after, and only after the description was read")
		}
		for range 100 {
			verify(foreign)
			time.Sleep(100 * time.Millisecond)
		}
		if n := opened.described.Load() - before; n < 2 || n > 3 {
			t.Errorf("%d descriptions were read in ten seconds, want 2 or 3", n)
		}

		opened.shown.Store(&first) // the store was set back
		time.Sleep(10 * time.Second)
		for _, known := range []lease.Description{first, d} {
			verify(foreign)
			if !verify(leasedID(t, known)) {
				t.Errorf("the history %s was forgotten", known.ID)
			}
		}
	})
}
