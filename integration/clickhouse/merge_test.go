package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// Blocks with root spans and blocks without merge with each other: a service that
// is only called sends no roots.
func TestPartsWithoutRootsMerge(t *testing.T) {
	for name, s := range map[string]clickhouse.Schema{"fine": {Table: "spans"}, "plain": {Table: "spans", Plain: true}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.run(s.Statements())
			var want []span
			for i := range 8 {
				block := make([]span, 100)
				for j := range block {
					n := uint64(i*len(block) + j + 1)
					block[j] = span{trace: few()[0].trace, id: n, service: "service-1", name: "b", start: noon.Add(time.Duration(n) * time.Millisecond)}
					if i%2 == 0 {
						block[j].parent = 1
					}
				}
				e.insert("spans", block)
				want = append(want, block...)
			}
			for range 10 {
				e.exec("OPTIMIZE TABLE spans")
			}
			if parts := e.one("SELECT toString(count()) FROM system.parts WHERE active AND table = 'spans' AND database = currentDatabase()"); parts != "1" {
				t.Errorf("%s parts are left, want 1", parts)
			}
			e.agree(name, s, want)
		})
	}
}

// A lightweight DELETE takes the projection of the parts that it changes, which then
// merge with no others. Neither a merge nor MATERIALIZE PROJECTION alone brings it
// back: the deleted rows must be gone first.
func TestProjectionAfterDeletes(t *testing.T) {
	for name, s := range map[string]clickhouse.Schema{"fine": {Table: "spans"}, "plain": {Table: "spans", Plain: true}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.run(s.Statements())
			e.exec("SYSTEM STOP MERGES spans")
			spans := make([]span, 400)
			for i := range spans {
				n := uint64(i + 1)
				spans[i] = span{trace: few()[0].trace, id: n, service: "service-1", name: "b", start: noon.Add(time.Duration(n) * time.Millisecond)}
			}
			for block := range slices.Chunk(spans, 100) {
				e.insert("spans", block)
			}
			e.exec("SYSTEM START MERGES spans")
			e.exec("DELETE FROM spans WHERE SpanId = '0000000000000001'")
			parts := func() string {
				e.exec("OPTIMIZE TABLE spans FINAL")
				return e.one("SELECT toString(count()) || ' parts, ' || (SELECT toString(count()) FROM system.projection_parts WHERE active AND table = 'spans' AND database = currentDatabase()) || ' with projection'\n" +
					"FROM system.parts WHERE active AND table = 'spans' AND database = currentDatabase()")
			}
			for _, step := range []struct{ statement, want string }{
				{"SELECT 1", "4 parts, 3 with projection"},
				{"ALTER TABLE spans MATERIALIZE PROJECTION search SETTINGS mutations_sync = 1", "4 parts, 3 with projection"},
				{"ALTER TABLE spans APPLY DELETED MASK SETTINGS mutations_sync = 1", "4 parts, 3 with projection"},
				{"ALTER TABLE spans MATERIALIZE PROJECTION search SETTINGS mutations_sync = 1", "1 parts, 1 with projection"},
			} {
				e.exec(step.statement)
				if got := parts(); got != step.want {
					t.Errorf("after %s: %s, want %s", step.statement, got, step.want)
				}
			}
			e.agree(name, s, spans[1:])
		})
	}
}
