package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
)

// describe returns the description of a store.
func describe(t *testing.T, c fleet.Config) lease.Description {
	t.Helper()
	d, err := calls.Open(t, c.Store).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The first process creates a lease directory, with a secret of its own unless it has one, like
// every other store.
func TestDirectory(t *testing.T) {
	for _, own := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "leases")
		c := fleet.Config{Store: "file:" + dir}
		if !own {
			c.SecretFile = file(t, secret)
		}
		if err := open(t, c).Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		k, err := c.LoadSecrets()
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(dir, "secret"))
		if _, foreign := describe(t, c).Find(k); foreign != nil || (err == nil) != own {
			t.Errorf("%v; DIR/secret: %v", foreign, err)
		}
	}
}

// A directory may have been copied with a process that was restored: a history begins in it before
// the process leases again.
func TestRestoredWithADirectory(t *testing.T) {
	c := fleet.Config{Store: "file:" + filepath.Join(t.TempDir(), "leases")}
	inBubble(t, func(t *testing.T) {
		all := []*fleet.IDs{open(t, c), open(t, c)}
		before := describe(t, c)
		for _, ids := range all {
			ids.OnRestore()
		}
		time.Sleep(time.Minute)
		after := describe(t, c)
		if after.ID == before.ID || after.Reason != lease.Moved {
			t.Errorf("the history is %+v, before it was %s", after.History, before.ID)
		}
		for _, ids := range all {
			id, _ := ids.NewIDs(t.Context())
			if err := ids.Ready(t.Context()); err != nil || !ids.Verifier().Verify(id) {
				t.Errorf("%s, %v", id, err)
			}
		}
	})
}

// A directory that cannot be used now does not prevent a start, not even a strict one: it is an
// unavailable store, and is used when it is back. From then on the verifier knows its key.
func TestUnavailableDirectory(t *testing.T) {
	reportstest.Collect(t)
	disk := filepath.Join(t.TempDir(), "not mounted")
	ids := open(t, fleet.Config{Store: "file:" + filepath.Join(disk, "leases"), Strict: true})
	id, _ := ids.NewIDs(t.Context())
	edge := ids.Verifier()
	if !id.IsValid() || ids.Fallbacks() == 0 || ids.Keyring() != nil || edge.Verify(id) {
		t.Errorf("the ID %s, %d fallbacks", id, ids.Fallbacks())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(os.Mkdir(disk, 0o700), ids.Ready(ctx)); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if id, _ := ids.NewIDs(ctx); !edge.Verify(id) {
		t.Errorf("when it is back, the verifier refuses %s", id)
	}
}
