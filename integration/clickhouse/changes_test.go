package clickhouse_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

// agree compares every way to see the spans of a table with what must be in it: by
// trace, by time, by service, by the place of rows in parts, and through the view of
// trace times.
func (e *engine) agree(when string, s clickhouse.Schema, want []span) {
	e.t.Helper()
	from, to := noon.Add(-time.Hour), noon.Add(200*time.Hour)
	same := func(what string, got, want []string) {
		e.t.Helper()
		if !slices.Equal(sorted(got), sorted(want)) {
			e.t.Errorf("%s, %s: %d rows, want %d", when, what, len(got), len(want))
		}
	}
	all := func(span) bool { return true }
	same("time", e.find("SpanId")(s.Spans(from, to)), names(want, all))
	same("search", e.find(listed)(s.Search(clickhouse.Search{From: from, To: to, Limit: 10_000})), list(want))
	same("place", e.column("WITH places AS (SELECT (_part, _part_offset) FROM "+s.Table+" WHERE ServiceName = 'service-2') SELECT "+listed+" FROM "+s.Table+
		" WHERE ServiceName = 'service-2' AND (_part, _part_offset) IN places"), list(slices.DeleteFunc(slices.Clone(want), func(s span) bool { return s.service != "service-2" })))
	traces := map[string]int{}
	var roots []span
	var ids [][16]byte
	for _, span := range want {
		if span.parent == 0 {
			roots = append(roots, span)
		}
		if traces[span.trace]++; traces[span.trace] == 1 && len(ids) < 1000 {
			ids = append(ids, parse(span.trace))
		}
	}
	for _, service := range []string{"service-1", "service-2"} {
		is := func(s span) bool { return s.service == service }
		same("search "+service, e.find(listed)(s.Search(clickhouse.Search{From: from, To: to, Service: service, Limit: 10_000})),
			list(slices.DeleteFunc(slices.Clone(want), func(s span) bool { return !is(s) })))
		same("roots of "+service, e.column("SELECT "+listed+" FROM "+s.Table+" WHERE ParentSpanId = '' AND ServiceName = '"+service+"'"),
			list(slices.DeleteFunc(slices.Clone(roots), func(s span) bool { return !is(s) })))
		same("count of "+service, e.column("SELECT toString(count()) FROM "+s.Table+" WHERE ServiceName = '"+service+"'"),
			[]string{fmt.Sprint(len(names(want, is)))})
	}
	if len(ids) > 0 {
		in := map[string]bool{}
		for _, id := range ids {
			in[trace.TraceID(id).String()] = true
		}
		same("traces", e.find("SpanId")(clickhouse.TracesEverywhere(s, ids)), names(want, func(s span) bool { return in[s.trace] }))
	}
	same("lookup", e.column("SELECT TraceId FROM "+s.Table+"_trace_id_ts"), keys(traces))
	if text := e.find("TraceId || ' ' || toString(Spans)"); len(want) > 0 {
		var ours []string
		for id, n := range traces {
			if at := traceid.Time(parse(id)); !at.Before(from) && at.Before(to) {
				ours = append(ours, fmt.Sprint(id, " ", n))
			}
		}
		same("newest", text(s.Newest(from, to, trace.TraceID{}, 10_000)), ours)
	}
}

func keys(m map[string]int) []string {
	all := make([]string, 0, len(m))
	for key := range m {
		all = append(all, key)
	}
	return all
}

// TestChangesShowAtOnce: what was deleted, changed or stored is so in the very
// next query, whichever of the table and its projections answers it. Nothing is
// merged in between, except in the case that says so.
func TestChangesShowAtOnce(t *testing.T) {
	keep := func(spans []span, keep func(span) bool) []span {
		return slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return !keep(s) })
	}
	notService1 := func(s span) bool { return s.service != "service-1" }
	for name, schema := range map[string]clickhouse.Schema{"service first": {}, "trace first": {Layout: clickhouse.TraceFirst}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			schema.Table = "spans"
			all := few()
			late := all[0]
			late.id, late.start, late.parent = 99, late.start.Add(150*time.Hour), all[0].id
			for what, change := range map[string]func() []span{
				"nothing": func() []span { return all },
				"lightweight DELETE": func() []span {
					e.exec("DELETE FROM spans WHERE ServiceName = 'service-1'")
					return keep(all, notService1)
				},
				"two lightweight DELETEs, and spans between": func() []span {
					e.exec("DELETE FROM spans WHERE ServiceName = 'service-1'")
					e.insert("spans", []span{late})
					e.exec("DELETE FROM spans WHERE SpanName = 'GET /1'")
					return append(keep(all, func(s span) bool { return notService1(s) && s.name != "GET /1" }), keep([]span{late}, func(s span) bool { return s.name != "GET /1" })...)
				},
				"lightweight DELETE, merged": func() []span {
					e.exec("DELETE FROM spans WHERE ServiceName = 'service-1'")
					e.exec("OPTIMIZE TABLE spans FINAL")
					return keep(all, notService1)
				},
				"lightweight DELETE of everything": func() []span {
					e.exec("DELETE FROM spans WHERE 1")
					return nil
				},
				"ALTER DELETE": func() []span {
					e.exec("ALTER TABLE spans DELETE WHERE ServiceName = 'service-1' SETTINGS mutations_sync = 1")
					return keep(all, notService1)
				},
				"ALTER UPDATE": func() []span {
					e.exec("ALTER TABLE spans UPDATE Duration = 7, StatusCode = 'Error' WHERE ServiceName = 'service-2' SETTINGS mutations_sync = 1")
					changed := slices.Clone(all)
					for i, s := range changed {
						if s.service == "service-2" {
							changed[i].duration, changed[i].failed = 7, true
						}
					}
					return changed
				},
				"DROP COLUMN": func() []span {
					e.exec("ALTER TABLE spans ADD COLUMN Tenant String DEFAULT ServiceName")
					e.exec("ALTER TABLE spans MATERIALIZE COLUMN Tenant SETTINGS mutations_sync = 1")
					e.exec("ALTER TABLE spans DROP COLUMN Tenant SETTINGS mutations_sync = 1")
					return all
				},
				"the same spans again, OPTIMIZE DEDUPLICATE": func() []span {
					e.insert("spans", all[:500])
					e.exec("OPTIMIZE TABLE spans FINAL DEDUPLICATE")
					return all
				},
				"late span": func() []span {
					e.insert("spans", []span{late})
					return append(slices.Clone(all), late)
				},
			} {
				e.run(schema.Statements())
				e.insert("spans", all[:500])
				e.insert("spans", all[500:])
				e.agree(what, schema, change())
				e.exec("DROP TABLE spans SYNC")
			}
		})
	}
}

// TestTTLDropsOldSpans: a part goes when all of its spans are too old.
func TestTTLDropsOldSpans(t *testing.T) {
	e := newEngine(t)
	s := clickhouse.Schema{Table: "spans", TTL: 24 * time.Hour}
	e.run(s.Statements())
	e.exec("SYSTEM STOP TTL MERGES spans")
	now := time.Now()
	old := span{trace: traceid.Min(now).String(), id: 1, service: "a", name: "b", start: now.Add(-72 * time.Hour)}
	young := old
	young.id, young.start = 2, now
	e.insert("spans", []span{old, young})
	e.exec("SYSTEM START TTL MERGES spans")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && e.one("SELECT count() FROM spans") != "1"; {
		e.exec("OPTIMIZE TABLE spans") // a merge is what looks at the TTL
		time.Sleep(10 * time.Millisecond)
	}
	for _, query := range []string{"SELECT SpanId FROM spans", "SELECT '0000000000000002' FROM spans WHERE ServiceName = 'a'"} {
		if got := fmt.Sprint(e.column(query)); got != "[0000000000000002]" {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// TestPagesWhileTheTableChanges: pages of a search and of the newest traces miss
// no span that was there before and stays, show none twice, and none that was
// deleted before, while others insert, merge and delete.
func TestPagesWhileTheTableChanges(t *testing.T) {
	for name, schema := range map[string]clickhouse.Schema{"service first": {}, "trace first": {Layout: clickhouse.TraceFirst}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			schema.Table = "spans"
			e.run(schema.Statements())
			var stay, gone, pass []span
			for i, s := range world()[:6000] {
				switch {
				case strings.HasPrefix(s.trace, "000000"):
				case i%3 == 0:
					s.user = "pass"
					pass = append(pass, s)
				case s.service == "service-3":
					gone = append(gone, s)
				default:
					stay = append(stay, s)
				}
			}
			e.insert("spans", append(slices.Clone(stay), gone...))
			e.exec("DELETE FROM spans WHERE ServiceName = 'service-3'")

			ctx, stop := context.WithCancel(t.Context())
			var others sync.WaitGroup
			other := func(statement func(i int) string) {
				others.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						if _, err := e.Query(t.Context(), statement(i)); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			other(func(i int) string {
				batch := pass[i*50%len(pass):][:min(50, len(pass)-i*50%len(pass))]
				rows := make([]string, len(batch))
				for k, s := range batch {
					s.id, s.service = uint64(1+i)<<32|uint64(k), "passing"
					rows[k] = s.values()
				}
				return "INSERT INTO spans (Timestamp, TraceId, SpanId, ParentSpanId, ServiceName, SpanName, SpanKind, ResourceAttributes, SpanAttributes, Duration, StatusCode) VALUES " + strings.Join(rows, ",")
			})
			other(func(i int) string {
				return []string{"OPTIMIZE TABLE spans", "DELETE FROM spans WHERE ServiceName = 'passing' AND rand() % 2 = 0", "SELECT sleep(0.02)"}[i%3]
			})
			wantSpans := list(stay)
			wantTraces := map[string]bool{}
			from, to := noon.Add(-time.Hour), noon.Add(10*time.Hour)
			for _, s := range stay {
				if at := traceid.Time(parse(s.trace)); !at.Before(from) && at.Before(to) {
					wantTraces[s.trace] = true
				}
			}
			for range 3 {
				e.pageSearch(schema, from, to, wantSpans, list(gone))
				e.pageNewest(schema, from, to, wantTraces)
			}
			stop()
			others.Wait()
		})
	}
}

func (e *engine) pageSearch(s clickhouse.Schema, from, to time.Time, want, gone []string) {
	e.t.Helper()
	seen := map[string]int{}
	q := clickhouse.Search{From: from, To: to, Limit: 500}
	for {
		page := e.find(listed)(s.Search(q))
		if len(page) == 0 {
			break
		}
		once := map[string]int{}
		for _, row := range page {
			once[row]++
		}
		for row, n := range once {
			seen[row] += n
		}
		nanos, err := strconv.ParseInt(strings.Fields(page[len(page)-1])[1], 10, 64)
		if err != nil {
			e.t.Fatal(err)
		}
		q.To = time.Unix(0, nanos)
	}
	counts := map[string]int{}
	for _, row := range want {
		counts[row]++
	}
	for row, n := range counts {
		if seen[row] != n {
			e.t.Errorf("pages of a search show %q %d times, want %d", row, seen[row], n)
		}
	}
	for _, row := range gone {
		if seen[row] > counts[row] {
			e.t.Errorf("pages of a search show %q, which was deleted", row)
		}
	}
}

func (e *engine) pageNewest(s clickhouse.Schema, from, to time.Time, want map[string]bool) {
	e.t.Helper()
	seen := map[string]int{}
	var before trace.TraceID
	for {
		page := e.find("TraceId")(s.Newest(from, to, before, 100))
		if len(page) == 0 {
			break
		}
		for _, id := range page {
			seen[id]++
		}
		if !slices.IsSortedFunc(page, func(a, b string) int { return strings.Compare(b, a) }) {
			e.t.Error("a page is not in order")
		}
		before = parse(page[len(page)-1])
	}
	got := map[string]bool{}
	for id, n := range seen {
		if n > 1 {
			e.t.Errorf("pages of the newest traces show %s %d times", id, n)
		}
		if want[id] {
			got[id] = true
		}
	}
	if !reflect.DeepEqual(got, want) {
		e.t.Errorf("pages of the newest traces show %d of %d traces", len(got), len(want))
	}
}
