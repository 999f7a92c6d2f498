package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/randflake"
)

// Commands that read write nothing: the files have the same bytes, and a process that holds a lease
// renews it. They show its lease.
func TestReadingWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	s, err := filestore.New(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := acquired(t, s)
	t.Setenv(settings.Store, "file:"+path)
	content := func() (all string) {
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
	before, held := content(), "held by checkout-7 until "+rfc3339(g.End)
	command(t, "", "lease", "list").want(t, 0, held,
		"1 of 16384 blocks are taken; 1 were ever granted")
	command(t, "", "lease", "list", "-o", "json").want(t, 0, `"nonce":"`+g.Nonce+
		`","owner":"checkout-7"`, "blocks are taken")
	command(t, "", "lease", "list", "--node", fmt.Sprint(g.Node+3)).want(t, 0, held,
		"1 of 16384 blocks are taken")
	command(t, "", "lease", "list", "--node", fmt.Sprint(g.Node^8)).want(t, 1, "",
		fmt.Sprintf("node %d was never granted", g.Node^8))
	command(t, "", "lease", "raise").want(t, 2,
		"current leases that could not be renewed any more: 1",
		"nothing was written: if this is what you want, run the same command with --yes")
	command(t, "", "doctor").want(t, 0, "1 of 16384 blocks are taken", "")
	if content() != before {
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
			blocks[i].Nonce, blocks[i].Owner = protocol.NewNonce(), fmt.Sprint("pod-", i)
		}
	}
	var out bytes.Buffer
	want := regexp.MustCompile(
		`\n0-15 +2 .*\n24-31 +1 .*\n32-39 +1 .* pod-3 .*\n40-47 +1 .* pod-4 .*\n$`)
	if err := writeBlocks(&out, "text", blocks); err != nil || !want.MatchString(out.String()) {
		t.Errorf("%v\n%s", err, &out)
	}
}

// If the operator's clock is wrong by hours, doctor reports it, and raise uses the store's clock
// and says so. A repeated raise is the same raise.
func TestRaise(t *testing.T) {
	defer func() { now = time.Now }()
	for _, c := range []struct {
		ttl, wrong time.Duration
		says       string
	}{
		{10 * time.Minute, -3 * time.Hour, "behind the store"},
		{24 * time.Hour, 3 * time.Hour, "ahead of the store"},
	} {
		now = func() time.Time { return time.Now().Add(c.wrong) }
		var later time.Duration
		url, server := newServer()
		server.Clock = func() time.Time { return time.Now().Add(later) }
		t.Setenv(settings.Store, url)
		t.Setenv(settings.SecretFile, filepath.Join(t.TempDir(), "secret"))
		command(t, "", "lease", "create", "--longest-ttl", c.ttl.String()).want(t, 0, something, "")
		command(t, "", "doctor").want(t, 1, c.says, "")
		s := opened(t, url)
		g := acquired(t, s)
		command(t, "", "lease", "raise").want(t, 2,
			"current leases that could not be renewed any more: 1", "--yes")
		const ahead = time.Minute // how far a client's clock may be ahead
		least := time.Now().Add(c.ttl + ahead).Truncate(time.Second)
		command(t, "", "lease", "raise", "--yes").want(t, 0, "by the store's clock", "")
		if _, err := s.Renew(t.Context(), g, request()); !errors.Is(err, lease.ErrLost) {
			t.Errorf("renewed after the raise: %v", err)
		}
		list := command(t, "", "lease", "list")
		blocks, err := s.List(t.Context())
		if err != nil || len(blocks) != 16384 {
			t.Fatalf("%d blocks, %v", len(blocks), err)
		}
		end := blocks[0].End
		if end.Before(least) || end.After(least.Add(3*time.Minute)) {
			t.Errorf("TTL %s, clock wrong by %s: raised to %s, want %s", c.ttl, c.wrong, end, least)
		}
		// One row for all blocks before the one that was leased, one for it, one for all after it.
		list.want(t, 0, "raised, free from "+rfc3339(end), "16384 of 16384 blocks are taken")
		if n := strings.Count(list.out, rfc3339(end)); n > 3 || n+1 != len(lines(list.out)) {
			t.Errorf("the blocks are raised to different times:\n%s", list.out)
		}
		later = 2 * time.Second
		command(t, "", "lease", "raise", "--yes").want(t, 0, rfc3339(end), "")
		if again := command(t, "", "lease", "list"); again != list {
			t.Errorf("a repeated raise changed the blocks:\n%s", again.out)
		}
		command(t, "", "lease", "raise").want(t, 2,
			"current leases that could not be renewed any more: 0", "--yes")
	}
}
