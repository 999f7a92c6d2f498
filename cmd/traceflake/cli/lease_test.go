package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/setup"
)

// directory creates a lease directory as a service does.
func directory(t *testing.T) (url string, s driver.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leases")
	s, err := filestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return "file:" + path, s
}

// Only what uses leases creates a file.
func TestCommandsCreateNoStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	for _, args := range [][]string{
		{"lease", "list"}, {"lease", "show", "8"}, {"lease", "raise", "--yes"}, {"lease", "raise"},
		{"lease", "secret", "add", filepath.Join(t.TempDir(), "next")},
		{"verify", "1950fb0f8880000086cdcca4ab608495"},
		{"inspect", "1950fb0f8880000086cdcca4ab608495"},
	} {
		r := command(t, "", append(args, "--store", "file:"+path)...)
		decodes := args[0] == "inspect" // what can be read without a secret
		if (r.code == 0) != decodes ||
			!strings.Contains(r.errOut, "the first process that uses it creates it") ||
			strings.Contains(r.errOut, "lease create") {
			t.Errorf("%q: exit code %d, %s", args, r.code, r.errOut)
		}
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%q created the file", args)
		}
	}
	create := []string{"lease", "create", "--store", "file:" + path, "--block-size", "16"}
	command(t, "", append(create, "--secret-file", write(t, "secret", secretA))...).want(t, 2, "",
		"has a secret of its own")
	for range 2 {
		command(t, "", create...).want(t, 0, "in blocks of 16", "")
	}
	command(t, "", "lease", "create", "--store", "file:"+path, "--block-size", "4").want(t, 2, "",
		"in blocks of 16, leases of up to 10m: --block-size=4 cannot")
}

// Commands that read write nothing: the file has the same bytes, and a process that holds a lease
// renews it. They show its lease.
func TestReadingWritesNothing(t *testing.T) {
	store, s := directory(t)
	t.Setenv(setup.StoreVar, store)
	command(t, "", "lease", "list").want(t, 0, "",
		"0 of 16384 blocks are taken; 0 were ever granted")
	r := lease.Request{Nonce: driver.NewNonce(), Now: time.Now(), TTL: 5 * time.Minute,
		Owner: "checkout-7"}
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	secret := write(t, "secret", secretA)
	spanOn := func(node uint32) string {
		id, err := keyring(t, secret).Codec().Encode(randflake.Parts{Time: time.Now(), Node: node})
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	content := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(strings.TrimPrefix(store, "file:"), "*"))
		all := fmt.Sprint(files)
		for _, file := range files {
			content, readErr := os.ReadFile(file)
			all, err = all+string(content), errors.Join(err, readErr)
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before, held := content(), "held by checkout-7 until "+g.End.UTC().Format(time.RFC3339)
	command(t, "", "lease", "list").want(t, 0, held,
		"1 of 16384 blocks are taken; 1 were ever granted")
	command(t, "", "lease", "list", "-o", "json").want(t, 0, `"nonce":"`+r.Nonce+
		`","owner":"checkout-7"`, "blocks are taken")
	command(t, "", "lease", "show", fmt.Sprint(g.Node+3)).want(t, 0, held, "")
	command(t, "", "lease", "show", fmt.Sprint(g.Node^8)).want(t, 1, "",
		fmt.Sprintf("node %d was never granted", g.Node^8))
	command(t, "", "lease", "show", "131072").want(t, 2, "", "is not a node from 0 to 131071")
	command(t, "", "lease", "raise").want(t, 2, "would be granted",
		"nothing was written: if this is what you want, run the same command with --yes")
	command(t, "", "inspect", "--secret-file", secret, spanOn(g.Node+5)).want(t, 0,
		fmt.Sprintf("lease now block %d+8, held by checkout-7 until ", g.Node), "")
	command(t, "", "inspect", "--secret-file", secret, spanOn(g.Node^8)).want(t, 0,
		"lease now never granted", "")
	command(t, "", "verify", "1950fb0f8880000086cdcca4ab608495").want(t, 1, something, "")
	if content() != before {
		t.Fatal("a command that reads wrote to the store")
	}
	next := lease.Request{Nonce: driver.NewNonce(), Now: time.Now(), TTL: 6 * time.Minute}
	if g, err = s.Renew(t.Context(), g, next); err != nil {
		t.Fatalf("the holder cannot renew: %v", err)
	}
	// After its release it has no holder, even in its last remaining second.
	if err := s.Release(t.Context(), g, r.Nonce, g.End.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "list", "--held").want(t, 0, "without an owner, free from ",
		"1 of 16384 blocks are taken")
}

// Neighbours that differ only in their nodes are one row.
func TestRowsOfBlocks(t *testing.T) {
	var blocks []lease.Grant
	end := time.Now().Add(time.Hour)
	for i, node := range []uint32{0, 8, 24, 32, 40} {
		blocks = append(blocks,
			lease.Grant{Lease: randflake.Lease{Node: node, Nodes: 8, End: end}, Version: 1})
		if i > 2 {
			blocks[i].Nonce, blocks[i].Owner = driver.NewNonce(), fmt.Sprint("pod-", i)
		}
	}
	var out bytes.Buffer
	cmd := new(cobra.Command)
	cmd.SetOut(&out)
	if err := writeBlocks(cmd, "text", blocks); err != nil ||
		!regexp.MustCompile(
			`\n0-15 +2 .*\n24-31 +1 .*\n32-39 +1 .* pod-3 .*\n40-47 +1 .* pod-4 .*\n$`).MatchString(
			out.String()) {
		t.Errorf("%v\n%s", err, &out)
	}
}

// servers are servers of pages in memory, on which the tests open stores as test:NAME.
var servers = map[string]*leasetest.Server{}

func init() {
	driver.Register("test", func(url string) (driver.Store, error) {
		return driver.New(servers[strings.TrimPrefix(url, "test:")],
			driver.Layout{Name: "test", BlocksPerPage: 1024})
	})
}

// newServer begins a server without a store.
func newServer(t *testing.T, clock func() time.Time) (url string, s *leasetest.Server) {
	t.Helper()
	s = &leasetest.Server{Memory: driver.Memory{Clock: clock}}
	servers[t.Name()] = s
	return "test:" + t.Name(), s
}

// opened returns a client of a store.
func opened(t *testing.T, url string) driver.Store {
	t.Helper()
	s, err := driver.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func described(t *testing.T, url string) lease.Description {
	t.Helper()
	d, err := opened(t, url).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A store is created once, together with its secret. The command can be repeated.
func TestCreate(t *testing.T) {
	url, _ := newServer(t, time.Now)
	secret := filepath.Join(t.TempDir(), "secret")
	command(t, "", "lease", "create").want(t, 2, "", "no store")
	command(t, "", "lease", "create", "--store", url).want(t, 2, "", "no secret file")
	command(t, "", "lease", "list", "--store", url).want(t, 2, "",
		"create it once with `traceflake lease create`")
	r := command(t, "", "new", "--store", url, "--secret-file", write(t, "any", secretA))
	// it starts only with a store
	if r.want(t, 2, "", "no lease store here"); strings.Contains(r.errOut, "no leased node") {
		t.Errorf("new without a store: %s", r.errOut)
	}
	create := []string{"lease", "create", "--store", url, "--secret-file", secret, "--block-size",
		"16", "--longest-ttl", "1h"}
	command(t, "", create...).want(t, 0, "nodes 0 to 131071 in blocks of 16, leases of up to 1h",
		"")
	d := described(t, url)
	if want := driver.Fingerprint(keyring(t, secret).Codec(), d.ID); !slices.Equal(d.Secrets,
		[]string{want}) || !d.Raised.IsZero() {
		t.Errorf("described as %+v, want the secret %s", d, want)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", info, err)
	}
	command(t, "", create...).want(t, 0, "the store exists: ", "")
	if again := described(t, url); again.ID != d.ID || len(again.Secrets) != 1 {
		t.Errorf("created again: %+v", again)
	}
	// What the store cannot become is refused.
	for _, flag := range [][]string{{"--block-size", "4"}, {"--longest-ttl", "2h"},
		{"--nodes", "0+1024"}} {
		command(t, "", append(create[:6:6], flag...)...).want(t, 2, "", flag[0]+"="+flag[1]+
			" cannot change that")
	}
	command(t, "", create[:6]...).want(t, 0,
		"for every process: its URL of the store in TRACEFLAKE_STORE", "")
	command(t, "", "lease", "create", "--store", url, "--secret-file",
		write(t, "other", secretA)).want(t, 2, "", "its secret is not in ")
	missing := filepath.Join(t.TempDir(), "missing")
	command(t, "", "lease", "create", "--store", url, "--secret-file", missing).want(t, 2, "",
		"give the secret file of that store")
	for _, name := range []string{missing, missing + unfinished} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was written for a store that has another secret", name)
		}
	}
	// IDs under another secret are refused by name.
	command(t, "", "new", "--store", url, "--secret-file", write(t, "other", secretA)).want(t, 2,
		"", "belongs to another secret")
	// a late report of the run above may be in its errors
	if r := command(t, "", "new", "--store", url, "--secret-file", secret); r.code != 0 {
		t.Errorf("%+v", r)
	}
	for _, bad := range [][]string{{"--nodes", "8"}, {"--nodes", "0+0"}, {"--nodes", "0+8x"},
		{"--nodes", "4+8"}, {"--block-size", "3"}, {"--longest-ttl", "48h"}} {
		other, _ := newServer(t, time.Now)
		r := command(t, "",
			append([]string{"lease", "create", "--store", other, "--secret-file",
				filepath.Join(t.TempDir(), "s")}, bad...)...)
		if r.code != 2 || strings.Contains(r.out, "created") {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// A creation that is interrupted at any request is completed by the same command, with the same
// secret; a second operator at the same time has either the same store or an error.
func TestCreateInterrupted(t *testing.T) {
	for stop := 1; ; stop++ {
		url, s := newServer(t, time.Now)
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
		code := run(ctx, args, strings.NewReader(""), io.Discard, io.Discard)
		cancel()
		s.Accepts = nil
		done := code == 0
		if !done {
			if _, err := os.Stat(secret); err == nil {
				t.Fatalf("stopped at write %d: the secret has its name before the store has it",
					stop)
			}
			command(t, "", args...).want(t, 0, "ID ", "")
		}
		if d := described(t, url); !slices.Contains(d.Secrets,
			driver.Fingerprint(keyring(t, secret).Codec(), d.ID)) {
			t.Fatalf("stopped at write %d: the store has another secret than the file", stop)
		}
		command(t, "", "new", "--store", url, "--secret-file", secret).want(t, 0, something, "")
		if done {
			break
		}
	}
}

// No two stores get one secret, whatever was interrupted, and whoever creates at the same time.
func TestOneSecretForEachStore(t *testing.T) {
	interrupted := func(url string, args ...string) {
		t.Helper()
		name := strings.TrimPrefix(url, "test:")
		servers[name].Accepts = func(string, bool) bool { return false }
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if run(ctx, append([]string{"lease"}, args...), strings.NewReader(""), io.Discard,
			io.Discard) == 0 {
			t.Fatal("it was not interrupted")
		}
		servers[name].Accepts = nil
	}
	server := func() string {
		name := t.Name() + driver.NewNonce()
		servers[name] = &leasetest.Server{Memory: driver.Memory{Clock: time.Now}}
		return "test:" + name
	}
	first, other, dir := server(), server(), t.TempDir()
	secret, next := filepath.Join(dir, "secret"), filepath.Join(dir, "next")
	interrupted(first, "create", "--store", first, "--secret-file", secret)
	create := func(url, file string) result {
		return command(t, "", "lease", "create", "--store", url, "--secret-file", file)
	}
	create(other, secret).want(t, 2, "", "has the secret of another store")
	create(first, secret).want(t, 0, "created", "")
	create(other, secret).want(t, 2, "", "a new store needs a new secret")
	interrupted(first, "secret", "add", next, "--store", first)
	create(other, next).want(t, 2, "", "has the secret of another store")
	create(other, filepath.Join(dir, "own")).want(t, 0, "created", "")
	command(t, "", "lease", "secret", "add", next, "--store", other).want(t, 2, "",
		"has the secret of another store")
	command(t, "", "lease", "secret", "add", next, "--store", first).want(t, 0, "registered", "")
	if text, err := os.ReadFile(secret); err != nil ||
		!strings.Contains(string(text), "# lease store "+described(t, first).ID+"\n") {
		t.Errorf("the file does not say whose secret it has: %v", err)
	}

	for range 10 {
		file := filepath.Join(t.TempDir(), "secret")
		var urls [2]string
		var codes [2]int
		var all sync.WaitGroup
		for i := range urls {
			urls[i] = server()
		}
		for i, url := range urls {
			all.Go(func() {
				codes[i] = run(t.Context(),
					[]string{"lease", "create", "--store", url, "--secret-file", file},
					strings.NewReader(""), io.Discard, io.Discard)
			})
		}
		all.Wait()
		if codes[0] == 0 && codes[1] == 0 {
			t.Fatal("two stores have one secret")
		}
	}
}

// A store that was created elsewhere is raised only if the operator says that the original is gone.
func TestMovedHere(t *testing.T) {
	url, s := newServer(t, time.Now)
	secret := filepath.Join(t.TempDir(), "secret")
	s.Place = "here"
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, "created",
		"")
	s.Place = "elsewhere"
	raise := []string{"lease", "raise", "--store", url}
	command(t, "", append(raise, "--yes")...).want(t, 2, "", "raise --moved-here")
	command(t, "", "doctor", "--store", url, "--secret-file", secret).want(t, 1,
		"traceflake lease raise --moved-here", "")
	command(t, "", append(raise, "--moved-here")...).want(t, 2, "now is", "nothing was written")
	command(t, "", append(raise, "--moved-here", "--yes")...).want(t, 0, "raised: nothing before",
		"")
	command(t, "", append(raise, "--yes")...).want(t, 0, "raised: nothing before", "")
}

// Where files cannot have two names, a new secret gets its name all the same.
func TestNoHardLinks(t *testing.T) {
	defer func(was func(string, string) error) { link = was }(link)
	link = func(string, string) error { return errors.ErrUnsupported }
	url, _ := newServer(t, time.Now)
	secret := filepath.Join(t.TempDir(), "secret")
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, "created",
		"")
	if _, err := os.Stat(secret + unfinished); err == nil {
		t.Error("the secret has its other name, too")
	}
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0,
		"the store exists", "")
}

// A secret is rotated without a new store.
func TestSecretAdd(t *testing.T) {
	url, _ := newServer(t, time.Now)
	dir := t.TempDir()
	first, next := filepath.Join(dir, "secret"), filepath.Join(dir, "next")
	command(t, "", "lease", "create", "--store", url, "--secret-file", first).want(t, 0, something,
		"")
	command(t, "", "lease", "secret", "add", first+"x/next", "--store", url).want(t, 2, "",
		"secret: ")
	for range 2 { // the second time nothing changes
		command(t, "", "lease", "secret", "add", next, "--store", url).want(t, 0,
			"registered the secret in "+next, "")
	}
	if d := described(t, url); len(d.Secrets) != 2 {
		t.Errorf("registered: %q", d.Secrets)
	}
	for _, secret := range []string{first, next} {
		command(t, "", "new", "--store", url, "--secret-file", secret).want(t, 0, something, "")
	}
	command(t, "", "lease", "secret", "add", write(t, "old", secretA), "--store", url).want(t, 2,
		"", "its secret may belong to another store")
}

// The operator's clock is wrong by hours: a raise takes the store's, and says so. Repeated, it is
// the same raise.
func TestRaise(t *testing.T) {
	defer func() { now = time.Now }()
	for ttl, wrong := range map[time.Duration]time.Duration{10 * time.Minute: -3 * time.Hour,
		24 * time.Hour: 3 * time.Hour} {
		now = func() time.Time { return time.Now().Add(wrong) }
		var later time.Duration
		url, _ := newServer(t, func() time.Time { return time.Now().Add(later) })
		secret := filepath.Join(t.TempDir(), "secret")
		command(t, "", "lease", "raise", "--yes", "--store", url).want(t, 2, "",
			"no lease store here")
		command(t, "", "lease", "create", "--store", url, "--secret-file", secret, "--longest-ttl",
			ttl.String()).want(t, 0, something, "")
		s := opened(t, url)
		g, err := s.Acquire(t.Context(),
			lease.Request{Nonce: driver.NewNonce(), Now: time.Now(), TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		command(t, "", "lease", "raise", "--store", url).want(t, 2,
			"current leases that could not be renewed any more: 1", "--yes")
		least := time.Now().Add(ttl + time.Minute).Truncate(time.Second)
		command(t, "", "lease", "raise", "--yes", "--store", url).want(t, 0, "by the store's clock",
			"")
		if _, err := s.Renew(t.Context(), g,
			lease.Request{Nonce: driver.NewNonce(), Now: time.Now(), TTL: time.Minute}); !errors.Is(
			err, lease.ErrLost) {
			t.Errorf("renewed after the raise: %v", err)
		}
		blocks, err := s.List(t.Context())
		if err != nil || len(blocks) != 16384 {
			t.Fatalf("%d blocks, %v", len(blocks), err)
		}
		end := blocks[0].End
		for _, b := range blocks {
			if b.End.Before(least) || b.End.After(least.Add(3*time.Minute)) {
				t.Fatalf("TTL %s, clock wrong by %s: raised to %s, want %s", ttl, wrong, b.End,
					least)
			}
		}
		later = 2 * time.Second
		command(t, "", "lease", "raise", "--yes", "--store", url).want(t, 0, rfc3339(end), "")
		if again, err := s.List(t.Context()); err != nil || !slices.Equal(again, blocks) {
			t.Errorf("a repeated raise changed the blocks: %v", err)
		}
		command(t, "", "new", "--store", url, "--secret-file", secret).want(t, 2, "",
			"no leased node")
		command(t, "", "lease", "raise", "--store", url).want(t, 2,
			"current leases that could not be renewed any more: 0", "--yes")
		list := command(t, "", "lease", "list", "--store", url)
		list.want(t, 0, "raised, free from "+rfc3339(end), "16384 of 16384 blocks are taken")
		if n := len(lines(list.out)); n > 4 {
			t.Errorf("%d lines, want one for all blocks before that one, and one for all after it",
				n)
		}
	}
}

// IDs made under a store's own secret are decoded and verified with the store.
func TestStoreSecret(t *testing.T) {
	store, _ := directory(t)
	other, _ := directory(t)
	id := strings.TrimSpace(command(t, "", "new", "--store", store).out)
	command(t, "", "new", "--store", other).want(t, 0, something, "")

	command(t, "", "inspect", "--store", store, id).want(t, 0, "halves agree", "")
	command(t, "", "inspect", "--store", other, id).want(t, 0, "halves disagree", "")
	command(t, "", "verify", "--store", store, id).want(t, 0, id+"\tverified\n", "")
	command(t, "", "verify", "--store", other, id).want(t, 1, id+"\tnot verified\thalves: ", "")
	// A flag takes precedence over the environment.
	t.Setenv(setup.StoreVar, other)
	command(t, "", "verify", "--store", store, id).want(t, 0, id+"\tverified\n", "")
	// A secret file takes precedence, and then no store is needed.
	secret := write(t, "secret", secretA)
	command(t, "", "verify", "--store", store, "--secret-file", secret, id).want(t, 1,
		"not verified", "")
	dead := "postgres://user:hunter2@127.0.0.1:1/db"
	command(t, "", "verify", "--store", dead, "--secret-file", secret, id).want(t, 1,
		"not verified", "")
	command(t, "", "verify", "--store", dead, id).want(t, 2, "", "no secret: give --secret-file")
}

func TestDeadStore(t *testing.T) {
	server, none := newServer(t, time.Now) // without a store
	secret, store := write(t, "secret", secretA), "postgres://user:hunter2@127.0.0.1:1/db"
	ids := made(t, secret, 3)
	command(t, strings.Join(ids, "\n"), "inspect", "--store", server, "--secret-file",
		secret).want(t, 0, "halves agree", "leases are not shown: ")
	if none.Reads != 1 {
		t.Errorf("inspect asked a store that does not answer %d times", none.Reads)
	}
	command(t, "", "lease", "list", "--store", store).want(t, 2, "", "pgstore: ")
	// has no node
	command(t, "", "inspect", "4bf92f3577b34da6a3ce929d0e0e4736", "--store", store).want(t, 0,
		"128 bits", "")
	command(t, "", "inspect", ids[0], "--store", store, "--secret-file", secret).want(t, 0,
		"halves agree", "leases are not shown: pgstore")
	command(t, "", "new", "--store", store, "--secret-file", secret).want(t, 2, "",
		"no leased node")
	command(t, "", "lease", "list", "--store", "redis://user:hunter2@h").want(t, 2, "",
		"unknown kind of store: its URL must begin with one of: etcd://, etcds://, file:, "+
			"k8s://, postgres://")
	command(t, "", "lease", "list", "--store", "postgres://user:hunter2@h:port:/").want(t, 2, "",
		"the URL: ")
}

// What an operator may get wrong, and which command the doctor says mends it.
func TestDoctor(t *testing.T) {
	command(t, "", "doctor").want(t, 0, "zero configuration", "")
	url, _ := newServer(t, time.Now)
	secret := filepath.Join(t.TempDir(), "secret")
	doctor := func(args ...string) result {
		return command(t, "", append([]string{"doctor", "--store", url}, args...)...)
	}

	doctor("--secret-file", write(t, "any", secretA)).want(t, 1, "traceflake lease create", "")
	doctor().want(t, 1, "no secret file", "")
	command(t, "", "lease", "create", "--store", url, "--secret-file", secret).want(t, 0, something,
		"")
	doctor("--secret-file", secret).want(t, 0, "0 of 16384 blocks are taken", "")
	doctor("--secret-file", secret).want(t, 0, "agrees with the store's", "")
	doctor("--secret-file", write(t, "other", secretA)).want(t, 1, "traceflake lease secret add",
		"")
	doctor("--secret-file", write(t, "short", secretA[:30])).want(t, 1, "line 1 has 30 characters",
		"")
	command(t, "", "doctor", "--store", "redis://user:hunter2@h").want(t, 1,
		"unknown kind of store", "")

	t.Setenv("TRACEFLAKE_STROE", "x")
	r := doctor("--secret-file", secret, "-o", "json")
	r.want(t, 1,
		`"check":"environment","ok":false,"found":"nothing reads TRACEFLAKE_STROE (did you mean TRACEFLAKE_STORE?)"`, "has no effect")
	for _, line := range lines(r.out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Check == "" || f.Found == "" ||
			f.OK == (f.Fix != "") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := os.Unsetenv("TRACEFLAKE_STROE"); err != nil {
		t.Fatal(err)
	}

	now = func() time.Time { return time.Now().Add(3 * time.Hour) }
	defer func() { now = time.Now }()
	doctor("--secret-file", secret).want(t, 1, "this machine is 3h", "")
	now = time.Now

	command(t, "", "lease", "raise", "--yes", "--store", url).want(t, 0, something, "")
	doctor("--secret-file", secret).want(t, 1, "nothing is granted before ", "")

	store, s := directory(t)
	command(t, "", "doctor", "--store", store).want(t, 0, "the store's own", "")
	for range 2 {
		if _, err := s.Acquire(t.Context(),
			lease.Request{Nonce: driver.NewNonce(), Now: time.Now(), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "", "doctor", "--store", store).want(t, 0, "2 of 16384 blocks are taken", "")
	missing := "file:" + filepath.Join(t.TempDir(), "leases")
	command(t, "", "doctor", "--store", missing, "--secret-file", secret).want(t, 1,
		"unset TRACEFLAKE_SECRET_FILE", "")
	command(t, "", "doctor", "--store", missing).want(t, 0,
		"the first process that uses it creates it", "")
	if _, err := os.Stat(strings.TrimPrefix(missing, "file:")); err == nil {
		t.Error("the doctor created a file")
	}
	// Where no process could create it, the doctor is not green.
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "missing",
			"leases"): "→ correct the path, or create what the error names as missing",
		write(t, "file",
			""): "→ correct the path: a file and a directory are mixed up",
		filepath.Dir(
			write(t, "passwd",
				"x")): "→ correct the address if another program keeps its data there",
	} {
		command(t, "", "doctor", "--store", "file:"+path).want(t, 1, want, "")
	}
	t.Setenv(setup.TTLVar, "1s")
	command(t, "", "doctor").want(t, 1, "TRACEFLAKE_TTL=1s", "")
}
