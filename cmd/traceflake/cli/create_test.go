package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/fleet"
)

// registered checks that a file has n secrets, that only its owner can read it, and that a store
// has the first one alone.
func registered(t *testing.T, what any, url, path string, n int) {
	t.Helper()
	d, err := opened(t, url).Describe(t.Context())
	k, keyErr := fleet.LoadKeyring(path)
	info, statErr := os.Stat(path)
	if err := errors.Join(err, keyErr, statErr); err != nil {
		t.Fatalf("%v: %v", what, err)
	}
	if !slices.Equal(d.Secrets, []string{d.Fingerprint(k.Codec())}) || len(k.Codecs()) != n ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("%v: the store has %q, and the file of mode %s %d others", what, d.Secrets,
			info.Mode(), len(k.Codecs()))
	}
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

// A creation that is interrupted at any request is completed by the same command, with the same
// secret.
func TestCreateInterrupted(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		url, s := newServer()
		secret := filepath.Join(t.TempDir(), "secret")
		args := []string{"lease", "create", "--store", url, "--secret-file", secret}
		if done = interrupted(t, s, stop, args...) == 0; !done {
			if _, err := os.Stat(secret); err == nil {
				t.Fatalf("stopped at write %d: the secret has its name before the store has it",
					stop)
			}
			command(t, "", args...).want(t, 0, "ID ", "")
		}
		registered(t, stop, url, secret, 1)
	}
}

// A store that was restored to a moment within its creation is not completed, since its secret was
// in use: its secret can be replaced.
func TestCreateRestored(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		url, s := newServer()
		flags := []string{"--store", url, "--secret-file", filepath.Join(t.TempDir(), "secret")}
		create := append([]string{"lease", "create"}, flags...)
		done = interrupted(t, s, stop, create...) == 0
		backup, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		command(t, "", create...).want(t, 0, "ID ", "")
		used := acquired(t, url, 0)
		restored(t, s, backup)
		was, err := opened(t, url).Describe(t.Context())
		if was.ID == "" || err == nil {
			continue // restored to before, or after
		}
		command(t, "", create...).want(t, 2, "", "restored from a backup")
		command(t, "", append([]string{"lease", "secret", "replace", used}, flags...)...).want(t, 0,
			"all blocks are free", "")
		if again := acquired(t, url, 0); again == used {
			t.Fatalf("stopped at write %d: the history %s began twice", stop, used)
		}
	}
}

// A creation that is interrupted at any request is repeated where the same URL leads to another
// server, as with a forwarded port, and then completed at the first server: the stores have two
// secrets.
func TestCreateInterruptedElsewhere(t *testing.T) {
	for stop := 1; ; stop++ {
		url, s := newServer()
		dir := t.TempDir()
		secret, own := filepath.Join(dir, "secret"), filepath.Join(dir, "own")
		args := []string{"lease", "create", "--store", url, "--secret-file", secret}
		if interrupted(t, s, stop, args...) == 0 {
			break
		}
		servers.Delete(url)
		command(t, "", args...).want(t, 0, "created", "")
		registered(t, stop, url, secret, 1)
		other, err := opened(t, url).Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		servers.Store(url, s)
		if d, err := opened(t, url).Describe(t.Context()); d.ID == other.ID {
			t.Fatalf("stopped at write %d: two stores have the ID %s", stop, d.ID)
		} else if err != nil && d.ID != "" {
			command(t, "", args...).want(t, 2, "", "rename it")
			suffix := "." + d.ID + unfinished
			if err := os.Rename(secret+suffix, own+suffix); err != nil {
				t.Fatal(err)
			}
		}
		args[len(args)-1] = own
		command(t, "", args...).want(t, 0, "ID ", "")
		registered(t, stop, url, own, 1)
		one, err1 := fleet.LoadKeyring(own)
		two, err2 := fleet.LoadKeyring(secret)
		if err := errors.Join(err1, err2); err != nil || one.Codec().Derive("") ==
			two.Codec().Derive("") {
			t.Fatalf("stopped at write %d: two stores have one secret, or %v", stop, err)
		}
	}
}

// Of several operators who create at once with one file, at most one gets the file, and no two
// stores get one secret.
func TestOneSecretForEachStore(t *testing.T) {
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
	registered(t, "without links", url, secret, 1)
	if left, _ := filepath.Glob(secret + ".*"); len(left) > 0 {
		t.Errorf("the secret has other names, too: %q", left)
	}
}

// A lease directory whose creation was interrupted, as by a full disk, is completed by the same
// command.
func TestCreateCompletesADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leases")
	create := []string{"lease", "create", "--store", "file:" + dir}
	command(t, "", create...).want(t, 0, "created", "")
	// the description as it was before the last write, with its checksum
	line, _, _ := strings.Cut(content(t, filepath.Join(dir, "config")), "\n")
	line = strings.Replace(line, `"complete"`, `"creating"`, 1) + "\n"
	sum := crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli))
	text := fmt.Sprintf("%s{\"CRC32C\":\"%08x\"}\n", line, sum)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "", "doctor", "--store", "file:"+dir).want(t, 0, "creates or completes it", "")
	command(t, "", create...).want(t, 0, "the store exists", "")
	command(t, "", "doctor", "--store", "file:"+dir).want(t, 0, "blocks are taken", "")
}
