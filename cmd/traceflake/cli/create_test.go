package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/traceflake/traceflake/lease/fleet"
)

// registered checks that a store has the secret in a file that only its owner can read.
func registered(t *testing.T, url, path string) {
	t.Helper()
	d, err := opened(t, url).Describe(t.Context())
	k, keyErr := fleet.LoadKeyring(path)
	info, statErr := os.Stat(path)
	if err := errors.Join(err, keyErr, statErr); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Secrets, []string{d.Fingerprint(k.Codec())}) ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("the store has %q, not the secret in the file, of mode %s", d.Secrets, info.Mode())
	}
}

// A creation that is interrupted at any request is completed by the same command, with the same
// secret.
func TestCreateInterrupted(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		url, s := newServer()
		secret := filepath.Join(t.TempDir(), "secret")
		var writes atomic.Int64 // pages are written concurrently
		ctx, cancel := context.WithCancel(t.Context())
		s.Accepts = func(_ string, unchanged bool) bool {
			if unchanged && writes.Add(1) == int64(stop) {
				cancel()
			}
			return unchanged
		}
		args := []string{"lease", "create", "--store", url, "--secret-file", secret}
		done = silently(ctx, args...) == 0
		cancel()
		s.Accepts = nil
		if !done {
			if _, err := os.Stat(secret); err == nil {
				t.Fatalf("stopped at write %d: the secret has its name before the store has it",
					stop)
			}
			command(t, "", args...).want(t, 0, "ID ", "")
		}
		registered(t, url, secret)
	}
}

// No two stores get one secret, whatever was interrupted, and however many operators create at
// once.
func TestOneSecretForEachStore(t *testing.T) {
	first, server := newServer()
	other, _ := newServer()
	interrupted := func(args ...string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server.Accepts = func(string, bool) bool { cancel(); return false }
		if silently(ctx, append(args, "--store", first)...) == 0 {
			t.Fatal("it was not interrupted")
		}
		server.Accepts = nil
	}
	dir := t.TempDir()
	secret, next := filepath.Join(dir, "secret"), filepath.Join(dir, "next")
	create := func(url, file string) result {
		return command(t, "", "lease", "create", "--store", url, "--secret-file", file)
	}
	interrupted("lease", "create", "--secret-file", secret)
	create(other, secret).want(t, 2, "", "has the secret of another store")
	create(first, secret).want(t, 0, "created", "")
	interrupted("lease", "secret", "add", next)
	create(other, next).want(t, 2, "", "has the secret of another store")
	create(other, filepath.Join(dir, "own")).want(t, 0, "created", "")
	command(t, "", "lease", "secret", "add", next, "--store", other).want(t, 2, "",
		"has the secret of another store")
	command(t, "", "lease", "secret", "add", next, "--store", first).want(t, 0, "registered", "")

	for range 10 {
		file := filepath.Join(t.TempDir(), "secret")
		var created atomic.Int64
		var all sync.WaitGroup
		for range 2 {
			url, _ := newServer()
			all.Go(func() {
				if silently(t.Context(), "lease", "create", "--store", url, "--secret-file",
					file) == 0 {
					created.Add(1)
				}
			})
		}
		all.Wait()
		if created.Load() > 1 {
			t.Fatal("two stores have one secret")
		}
	}
}

// On file systems without hard links a new secret gets its final name, too.
func TestNoHardLinks(t *testing.T) {
	defer func(was func(string, string) error) { link = was }(link)
	link = func(string, string) error { return errors.ErrUnsupported }
	url, _ := newServer()
	secret := filepath.Join(t.TempDir(), "secret")
	for _, want := range []string{"created", "the store exists"} {
		command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, want,
			"")
	}
	registered(t, url, secret)
	if _, err := os.Stat(secret + unfinished); err == nil {
		t.Error("the secret has its other name, too")
	}
}
