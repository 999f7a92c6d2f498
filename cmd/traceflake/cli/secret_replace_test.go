package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/fleet"
)

// storeInUse creates a store that the environment names, and returns its URL, secret file, ID and
// server. A process has a lease.
func storeInUse(t *testing.T) (url, file, id string, server *calls.Memory) {
	t.Helper()
	url, server = newServer()
	file = filepath.Join(t.TempDir(), "secret")
	t.Setenv("TRACEFLAKE_STORE", url)
	t.Setenv("TRACEFLAKE_SECRET_FILE", file)
	command(t, "", "lease", "create").want(t, 0, something, "")
	return url, file, acquired(t, url, 0), server
}

// The command is interrupted at each write of the server.
func TestReplaceSecretIsKilled(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		url, file, old, server := storeInUse(t)
		done = interrupted(t, server, stop, "lease", "secret", "replace", old) == 0
		command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
		registered(t, stop, url, file, 2)
	}
}

// A new secret gets its name when it is registered: the command that was interrupted before that is
// repeated.
func TestAddSecretIsKilled(t *testing.T) {
	url, file, _, server := storeInUse(t)
	next := filepath.Join(filepath.Dir(file), "next")
	ctx, cancel := context.WithCancel(t.Context())
	server.Accepts = func(string, bool) bool {
		cancel()
		return false
	}
	if silently(ctx, "lease", "secret", "add", next) == 0 {
		t.Error("it was not interrupted")
	}
	server.Accepts = nil
	command(t, "", "lease", "secret", "add", next).want(t, 0, "registered", "")
	d, err := opened(t, url).Describe(t.Context())
	k, failed := fleet.LoadKeyring(next)
	if err := errors.Join(err, failed); err != nil || len(d.Secrets) != 2 ||
		d.Secrets[1] != d.Fingerprint(k.Codec()) {
		t.Errorf("the store has the secrets %q, %v", d.Secrets, err)
	}
}

// restored makes the objects of a server those of a backup.
func restored(t *testing.T, server *calls.Memory, backup map[string]driver.Object) {
	t.Helper()
	server.Delete("")
	for name, o := range backup {
		if _, err := server.Write(t.Context(), name, o.Data, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// The store has its new secret, but the secret file is missing for a moment, and the command is
// repeated where the same URL leads to another copy of the backup: the copies get two secrets, and
// the file keeps the old one.
func TestReplaceSecretElsewhere(t *testing.T) {
	url, file, old, server := storeInUse(t)
	backup, err := server.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := content(t, file)
	server.Accepts = func(_ string, unchanged bool) bool {
		_ = os.Remove(file)
		return unchanged
	}
	command(t, "", "lease", "secret", "replace", old).want(t, 2, "", "run the same command again")
	server.Accepts = nil
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	one, err := opened(t, url).Describe(t.Context())
	if err != nil || one.Replaced != old {
		t.Fatalf("the first copy: %+v, %v", one, err)
	}
	restored(t, server, backup)
	command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
	registered(t, "the other copy", url, file, 2)
	k, err := fleet.LoadKeyring(file)
	other, described := opened(t, url).Describe(t.Context())
	if err = errors.Join(err, described); err != nil || other.ID == one.ID ||
		slices.Contains(one.Secrets, one.Fingerprint(k.Codec())) {
		t.Errorf("%v: the copies have one secret: %+v and %+v", err, one, other)
	}
}

// A store is restored to the middle of a replacement that was completed since, and whose secret is
// in use: the repeated command does not begin that history again. The present ID can be replaced,
// also by an operator who does not have its secret.
func TestReplaceSecretOfAnUnfinishedReplacement(t *testing.T) {
	url, file, old, server := storeInUse(t)
	copied := content(t, file)
	var backup map[string]driver.Object
	var first sync.Once
	server.Accepts = func(name string, unchanged bool) bool {
		if name != "config" {
			first.Do(func() { backup, _ = server.Objects.List(t.Context()) })
		}
		return unchanged
	}
	command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
	server.Accepts = nil
	used := acquired(t, url, 0)
	for _, text := range []string{content(t, file), copied} {
		restored(t, server, backup)
		t.Setenv("TRACEFLAKE_SECRET_FILE", write(t, "copy", text))
		command(t, "", "lease", "secret", "replace", old).want(t, 2, "", " present ID")
		command(t, "", "lease", "secret", "replace", used).want(t, 0, "all blocks are free", "")
		if again := acquired(t, url, 0); again == used {
			t.Errorf("the history %s began twice", used)
		}
	}
}

// A line that is added to the secret file while the secret is replaced stays there.
func TestReplaceSecretWhileTheFileIsEdited(t *testing.T) {
	url, file, old, server := storeInUse(t)
	edited := content(t, file) + "# another fleet's\n" + strings.Repeat("1f", 16) + "\n"
	server.Accepts = func(_ string, unchanged bool) bool {
		if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
			t.Error(err)
		}
		return unchanged
	}
	command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
	registered(t, "after the edit", url, file, 3)
	if !strings.HasSuffix(content(t, file), edited) {
		t.Errorf("the file has %q", content(t, file))
	}
	if files, _ := filepath.Glob(file + "*"); len(files) != 1 {
		t.Errorf("the files are %q", files)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
