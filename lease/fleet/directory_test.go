package fleet_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
)

// directoryOf returns settings for a lease directory, and its path.
func directoryOf(t *testing.T) (c fleet.Config, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "leases")
	return fleet.Config{Store: "file:" + dir}, dir
}

// describe returns the description of a store.
func describe(t *testing.T, c fleet.Config) lease.Description {
	t.Helper()
	s, err := stores.Open(c.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The first processes create a lease directory with one secret, which only its owner can read, and
// leave no other file.
func TestFirstProcesses(t *testing.T) {
	reportstest.Collect(t)
	c, dir := directoryOf(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			ids, err := c.Open(t.Context())
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = errors.Join(ids.Ready(ctx), ids.Shutdown(ctx))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	k, err := c.LoadSecrets()
	info, failed := os.Stat(filepath.Join(dir, "secret"))
	left, _ := filepath.Glob(filepath.Join(dir, "*.new"))
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || len(k.Codecs()) != 1 || len(left) > 0 {
		t.Fatalf("mode %v, %d secrets; left are %q", info.Mode(), len(k.Codecs()), left)
	}
	if _, err := describe(t, c).Find(k); err != nil {
		t.Error(err)
	}
}

// A directory whose secret is lost is not used under another one, until an operator begins a
// history.
func TestLostSecret(t *testing.T) {
	reportstest.Collect(t)
	c, dir := directoryOf(t)
	ids, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = ids.Shutdown(t.Context())
	if err := os.Remove(filepath.Join(dir, "secret")); err != nil {
		t.Fatal(err)
	}
	c.Strict = true
	if _, err = c.Open(t.Context()); !errors.Is(err, lease.ErrWrongSecret) ||
		!strings.Contains(err.Error(), "traceflake lease rekey") {
		t.Errorf("got %v, want %v", err, lease.ErrWrongSecret)
	}
}

// A directory may have been copied with a process that was restored: a history begins in it before
// the process leases again.
func TestRestoredWithADirectory(t *testing.T) {
	reportstest.Collect(t)
	c, _ := directoryOf(t)
	inBubble(t, func(t *testing.T) {
		var all []*fleet.IDs
		for range 2 {
			ids, err := c.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ids.Shutdown(t.Context()) }()
			all = append(all, ids)
		}
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
	ids := fromEnv(t, map[string]string{"TRACEFLAKE_STRICT": "1",
		"TRACEFLAKE_STORE": "file:" + filepath.Join(disk, "leases")})
	id, _ := ids.NewIDs(t.Context())
	edge := ids.Verifier()
	if !id.IsValid() || ids.Fallbacks() == 0 || ids.Keyring() != nil || edge.Verify(id) {
		t.Errorf("the ID %s, %d fallbacks", id, ids.Fallbacks())
	}
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ids.Ready(ctx); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	if id, _ := ids.NewIDs(ctx); !edge.Verify(id) {
		t.Errorf("when it is back, the verifier refuses %s", id)
	}
}

// A directory may use a secret that is configured, like every other store.
func TestDirectoryWithTheFleetsSecret(t *testing.T) {
	c, dir := directoryOf(t)
	c.SecretFile = file(t, secret)
	ids, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ids.Shutdown(t.Context()) }()
	k, err := c.LoadSecrets()
	if err := errors.Join(err, ids.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	_, own := os.Stat(filepath.Join(dir, "secret"))
	if _, err := describe(t, c).Find(k); err != nil || !errors.Is(own, fs.ErrNotExist) {
		t.Errorf("%v; DIR/secret: %v", err, own)
	}
}
