package btree

import (
	"io"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

func TestBTree(t *testing.T) {
	b, err := insertAll(t.Context(), io.Discard, servers.PostgresForTest(t).DSN(), 3000)
	if err != nil {
		t.Fatal(err)
	}
	for buffers, want := range map[int64]string{b.buffers: "every index fits", 8192: "does not fit"} {
		b := b
		b.buffers = buffers
		if text := b.Report(); !strings.Contains(text, want) {
			t.Errorf("shared_buffers of %d: %s", buffers, text)
		}
	}
	trees := make(map[string]tree)
	for _, k := range b.trees {
		if k.index < int64(8*b.rows) || k.wal < k.index || k.splits < 2 {
			t.Errorf("%s %s: %+v", k.what, k.column, k)
		}
		trees[k.what+" "+k.column] = k
	}
	if random, ours := trees["random (UUIDv4) uuid"], trees["traceflake uuid"]; ours.splits >= random.splits {
		t.Errorf("ordered keys split %d pages, random keys %d", ours.splits, random.splits)
	}
}
