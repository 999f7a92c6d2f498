package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/fleet"
)

// complete checks that a store grants leases in a history under the secret of a file, which only
// its owner can read.
func complete(t *testing.T, what any, url, path string) {
	t.Helper()
	d, err := opened(t, url).Describe(t.Context())
	k, keyErr := fleet.LoadKeyring(path)
	info, statErr := os.Stat(path)
	if err := errors.Join(err, keyErr, statErr); err != nil {
		t.Fatalf("%v: %v", what, err)
	}
	if _, err := d.Find(k); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v, the file has mode %s", what, err, info.Mode())
	}
	acquired(t, url, 0)
}

// interrupted runs a command that is interrupted at a write, and returns its exit code. Pages are
// written concurrently.
func interrupted(t *testing.T, s *calls.Memory, write int, args ...string) int {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writes atomic.Int64
	s.Accepts = func(_ string, unchanged bool) bool {
		if unchanged && writes.Add(1) == int64(write) {
			cancel()
		}
		return unchanged
	}
	defer func() { s.Accepts = nil }()
	return silently(ctx, args...)
}

// A creation, and the begin of a history, that are interrupted at any write are begun anew by the
// same command, in a history of their own.
func TestLeaseCommandsAreKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a begin by others is watched for seconds
		time.Sleep(time.Until(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)))
		leaseCommandsAreKilled(t)
	})
}

func leaseCommandsAreKilled(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		url, s := newServer()
		secret := filepath.Join(t.TempDir(), "secret")
		flags := []string{"--store", url, "--secret-file", secret}
		create := append([]string{"lease", "create"}, flags...)
		rekey := append([]string{"lease", "rekey"}, flags...)
		seen := make(map[string]bool)
		done = interrupted(t, s, stop, create...) == 0
		d, _ := opened(t, url).Describe(t.Context())
		seen[d.ID] = true
		command(t, "", create...).want(t, 0, "history ", "")
		complete(t, stop, url, secret)
		done = interrupted(t, s, stop, rekey...) == 0 && done
		d, _ = opened(t, url).Describe(t.Context())
		again := seen[d.ID] && !done
		command(t, "", rekey...).want(t, 0, "begun the history", "")
		complete(t, stop, url, secret)
		if now := acquired(t, url, 0); again && seen[now] || now == d.ID {
			t.Errorf("stopped at write %d: the history %s went on", stop, now)
		}
	}
}

// Operators who create two stores at once with one file share the secret, which is complete.
func TestOperatorsShareASecret(t *testing.T) {
	for range 10 {
		file := filepath.Join(t.TempDir(), "secret")
		var all sync.WaitGroup
		var urls [3]string
		for i := range urls {
			urls[i], _ = newServer()
			all.Go(func() {
				command(t, "", "lease", "create", "--store", urls[i], "--secret-file", file).
					want(t, 0, "created", "")
			})
		}
		all.Wait()
		for _, url := range urls {
			complete(t, "at once", url, file)
		}
	}
}
