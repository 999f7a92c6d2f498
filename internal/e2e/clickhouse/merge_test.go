package clickhouse_test

import (
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
