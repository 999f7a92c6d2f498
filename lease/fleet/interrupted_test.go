package fleet_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// tornObjects refuse to write pages while torn.
type tornObjects struct {
	memstore.Objects
	torn atomic.Bool
}

func (o *tornObjects) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	if o.torn.Load() && strings.HasPrefix(name, "page-") {
		return driver.Object{}, context.Canceled
	}
	return o.Objects.Write(ctx, name, data, version, place)
}

var torn stores.Store // the store at fleet-torn:

func init() {
	stores.Register("fleet-torn", func(string) (stores.Store, error) { return torn, nil })
}

// A rekey to another secret is interrupted: processes whose file has it go on without a restart,
// under the new secret.
func TestInterruptedRekey(t *testing.T) {
	objects := new(tornObjects)
	store, err := stores.New(objects, driver.Layout{Name: "torn", BlocksPerPage: 4})
	k, parsed := randflake.ParseKeyring(secret)
	if err := errors.Join(err, parsed); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), lease.Description{Nodes: 64, BlockSize: 16},
		k.Codec()); err != nil {
		t.Fatal(err)
	}
	torn = store
	vars := leased(t, "fleet-torn://host", "TRACEFLAKE_TTL", "10s")
	env(t, vars)
	errs := reportstest.Collect(t)
	inBubble(t, func(t *testing.T) {
		g, err := fleet.FromEnv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Shutdown(t.Context()) }()
		text := secret + "\n00112233445566778899aabbccddeeff\n"
		if err := os.WriteFile(vars["TRACEFLAKE_SECRET_FILE"], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := store.Describe(t.Context())
		k, parsed := randflake.ParseKeyring(text)
		if err := errors.Join(err, parsed); err != nil {
			t.Fatal(err)
		}
		objects.torn.Store(true)
		_, err = store.Begin(t.Context(), lease.BeginRequest{Leaves: d.ID, Reason: lease.Rekey,
			Now: time.Now(), Secrets: k, Secret: k.Codecs()[1]})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the interrupted rekey: %v", err)
		}
		objects.torn.Store(false)
		time.Sleep(time.Minute)
		g.NewIDs(t.Context())
		now, err := store.Describe(t.Context())
		if err != nil || g.Fallbacks() > 0 || g.Ready(t.Context()) != nil {
			t.Fatalf("%v; %d fallbacks, %v; reported %v", err, g.Fallbacks(),
				g.Ready(t.Context()), errs())
		}
		if now.Secret != now.Fingerprint(k.Codecs()[1]) {
			t.Error("the history is not under the new secret")
		}
	})
}
