package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/lease/stores"
)

// Commands that read write nothing: the files have the same bytes, and a process that holds a lease
// renews it. They show its lease.
func TestReadingWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	s, err := filestore.New(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stores.EnsureSecrets(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	g := acquired(t, s)
	t.Setenv("TRACEFLAKE_STORE", "file:"+path)
	all := func() (all string) {
		t.Helper()
		files, err := filepath.Glob(path + "/*")
		for _, file := range files {
			content, readErr := os.ReadFile(file)
			all, err = all+file+string(content), errors.Join(err, readErr)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before, held := all(), "held by checkout-7 until "+rfc3339(g.End)
	command(t, "", "lease", "list").want(t, 0, held,
		"1 of 16384 blocks are taken; 1 were ever granted")
	command(t, "", "lease", "list", "-o", "json").want(t, 0, `"nonce":"`+g.Nonce+
		`","owner":"checkout-7"`, "blocks are taken")
	command(t, "", "lease", "list", "--node", fmt.Sprint(g.Node+3)).want(t, 0, held,
		"1 of 16384 blocks are taken")
	command(t, "", "lease", "list", "--node", fmt.Sprint(g.Node^8)).want(t, 1, "",
		fmt.Sprintf("node %d was never granted", g.Node^8))
	command(t, "", "lease", "secret", "replace").want(t, 2, "",
		"the store has the ID "+g.Store+": if it was restored")
	command(t, "", "doctor").want(t, 0, "1 of 16384 blocks are taken", "")
	if all() != before {
		t.Fatal("a command that reads wrote to the store")
	}
	nonce := g.Nonce
	if g, err = s.Renew(t.Context(), g, request()); err != nil {
		t.Fatalf("the holder cannot renew: %v", err)
	}
	// After its release it has no holder, even in its last remaining second.
	if err := s.Release(t.Context(), g, nonce, g.End.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "list", "--held").want(t, 0, "held by nobody until ",
		"1 of 16384 blocks are taken")
}

// A lease of a process whose clock is behind is not over at its end on the operator's clock.
func TestListMarksClocksThatAreBehind(t *testing.T) {
	url, _ := newServer()
	t.Setenv("TRACEFLAKE_STORE", url)
	t.Setenv("TRACEFLAKE_SECRET_FILE", filepath.Join(t.TempDir(), "secret"))
	command(t, "", "lease", "create").want(t, 0, something, "")
	s := opened(t, url)
	d, err := s.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.Store, r.Now = d.ID, r.Now.Add(-2*time.Hour)
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "list", "--held").want(t, 0, "held by checkout-7 until "+
		rfc3339(g.End)+" on its clock, which is "+shortly(g.Behind)+" behind the store's",
		"1 of 16384 blocks are taken")
	command(t, "", "lease", "list", "-o", "json").want(t, 0,
		fmt.Sprintf(`"free":false,"secondsBehind":%v}`, g.Behind.Seconds()), "blocks are taken")
	now = func() time.Time { return time.Now().Add(3 * time.Hour) } // the operator's
	defer func() { now = time.Now }()
	command(t, "", "lease", "list").want(t, 0, "held by checkout-7",
		"1 of 16384 blocks are taken")
	g.Behind = time.Hour // it was over an hour ago
	if text := state(g, time.Now()); text != "free since "+rfc3339(g.End) {
		t.Errorf("after its end it is %s", text)
	}
}

// storeInUse creates a store that the environment names, and returns its URL, secret file, ID and
// server. A process has a lease.
func storeInUse(t *testing.T) (url, file, id string, server *calls.Memory) {
	t.Helper()
	url, server = newServer()
	file = filepath.Join(t.TempDir(), "secret")
	t.Setenv("TRACEFLAKE_STORE", url)
	t.Setenv("TRACEFLAKE_SECRET_FILE", file)
	command(t, "", "lease", "create").want(t, 0, something, "")
	return url, file, acquired(t, opened(t, url)).Store, server
}

// wantSecrets checks that the file has n secrets, and that only the first is registered.
func wantSecrets(t *testing.T, what, url, file string, n int) {
	t.Helper()
	k, err := fleet.LoadKeyring(file)
	d, described := opened(t, url).Describe(t.Context())
	if err = errors.Join(err, described); err != nil || len(k.Codecs()) != n ||
		!slices.Equal(d.Secrets, []string{d.Fingerprint(k.Codec())}) {
		t.Errorf("%s: %v, %+v", what, err, d)
	}
}

// A store is restored to an old backup, twice, while the operator's clock is wrong by hours: its
// secret is replaced each time. A repeated command, and that of a second operator with a copy of
// the file, introduce no further secret.
func TestReplaceSecret(t *testing.T) {
	defer func() { now = time.Now }()
	now = func() time.Time { return time.Now().Add(-3 * time.Hour) }
	url, file, first, server := storeInUse(t)
	copied := content(t, file)
	backup, err := server.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replace := func(code int, out, errs string) {
		t.Helper()
		command(t, "", "lease", "secret", "replace", first).want(t, code, out, errs)
	}
	ids := []string{first}
	for range 2 {
		restored(t, server, backup)
		replace(0, "and all blocks are free", "")
		replace(0, "and all blocks are free", "")                                  // repeated
		command(t, "", "doctor").want(t, 1, "the secret in use is registered", "") // the clock
		g := acquired(t, opened(t, url))
		if ids = append(ids, g.Store); len(content(t, file)) <= len(copied) {
			t.Errorf("the old secrets are gone: %q", content(t, file))
		}
		// another operator, on another machine
		t.Setenv("TRACEFLAKE_SECRET_FILE", write(t, "copy", copied))
		replace(2, "", "another operator has begun to replace its secret")
		t.Setenv("TRACEFLAKE_SECRET_FILE", file)
		if files, _ := filepath.Glob(file + "*"); len(files) != 1 {
			t.Errorf("the files are %q", files)
		}
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
		t.Errorf("the histories are %q", ids)
	}
	command(t, "", "lease", "secret", "replace", lease.NewNonce()).want(t, 2, "",
		"the store has another ID")
}

// The command is killed at each write of the server, and before and after the file is renamed.
func TestReplaceSecretIsKilled(t *testing.T) {
	for writes := range 20 {
		url, file, old, server := storeInUse(t)
		var n atomic.Int32 // pages are written concurrently
		ctx, cancel := context.WithCancel(t.Context())
		server.Accepts = func(_ string, unchanged bool) bool {
			over := int(n.Add(1)) > writes
			if over {
				cancel()
			}
			return unchanged && !over
		}
		silently(ctx, "lease", "secret", "replace", old)
		server.Accepts = nil
		command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
		wantSecrets(t, fmt.Sprintf("after %d writes", writes), url, file, 2)
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

// The store has its new secret, but the command fails to rename the file, and is repeated where the
// same URL leads to another copy of the backup: the copies get two secrets.
func TestReplaceSecretElsewhere(t *testing.T) {
	url, file, old, server := storeInUse(t)
	backup, err := server.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := content(t, file)
	server.Accepts = func(_ string, unchanged bool) bool {
		_ = os.Remove(file)
		_ = os.Mkdir(file, 0o700) // so that nothing can be renamed to it
		return unchanged
	}
	command(t, "", "lease", "secret", "replace", old).want(t, 2, "", "run the same command again")
	server.Accepts = nil
	if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	one, err := opened(t, url).Describe(t.Context())
	if err != nil || one.Replaced != old {
		t.Fatalf("the first copy: %+v, %v", one, err)
	}
	restored(t, server, backup)
	command(t, "", "lease", "secret", "replace", old).want(t, 0, "all blocks are free", "")
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
	used := acquired(t, opened(t, url)).Store
	for _, text := range []string{content(t, file), copied} {
		restored(t, server, backup)
		t.Setenv("TRACEFLAKE_SECRET_FILE", write(t, "copy", text))
		command(t, "", "lease", "secret", "replace", old).want(t, 2, "", " present ID")
		command(t, "", "lease", "secret", "replace", used).want(t, 0, "all blocks are free", "")
		if again := acquired(t, opened(t, url)).Store; again == used {
			t.Errorf("the history %s began twice", used)
		}
	}
}

// A store is restored to the middle of its creation, and its secret has been in use since.
func TestReplaceSecretOfAnUnfinishedStore(t *testing.T) {
	url, server := newServer()
	t.Setenv("TRACEFLAKE_STORE", url)
	file := filepath.Join(t.TempDir(), "secret")
	t.Setenv("TRACEFLAKE_SECRET_FILE", file)
	var backup map[string]driver.Object
	server.Accepts = func(name string, unchanged bool) bool {
		if name == "page-0007" {
			backup, _ = server.Objects.List(t.Context())
		}
		return unchanged
	}
	command(t, "", "lease", "create").want(t, 0, something, "")
	server.Accepts = nil
	used := acquired(t, opened(t, url)).Store
	restored(t, server, backup)
	command(t, "", "lease", "secret", "replace", used).want(t, 0, "all blocks are free", "")
	if again := acquired(t, opened(t, url)).Store; again == used {
		t.Errorf("the history %s began twice", used)
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
	wantSecrets(t, "after the edit", url, file, 3)
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
