package clickhouse

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
)

// lookup returns the steps that create the lookup table and the materialized view that fills it,
// and that add the traces of spans that were stored before the view existed.
func (s Schema) lookup(o catalog, from string) (steps []Step) {
	v := s.values()
	stored := o.table(v.Rows)
	v.Engine = s.engine(o, stored.Engine)
	v.UUID, v.TTL = s.ownUUID(o, v.Engine), s.lookupTTL(stored)
	steps = append(steps, createStep(v.LookupRows, s.render("lookup", v)))
	if v.LookupRows != v.Lookup {
		steps = append(steps, s.front(v.Lookup, v.LookupRows))
	}
	steps = append(steps, createStep(v.LookupView, s.render("lookup_view", v)))
	if stored.exists() && !s.hasLookup(o) {
		steps = append(steps, s.fill("all traces", from, ""))
	}
	return steps
}

// hasLookup reports whether the lookup table and its view exist. If they were created, but not
// filled, the table lacks days.
func (s Schema) hasLookup(o catalog) bool {
	n := s.named()
	return o.table(n.LookupRows).exists() && o.table(n.LookupView).exists()
}

// fill returns the step that adds traces of stored spans to the lookup table. Rows that it already
// has do no harm.
func (s Schema) fill(traces, from, where string) Step {
	if s.Cluster != "" {
		traces += " of this server's shard: run the INSERT on one server of each other shard, too"
	}
	v := s.values()
	v.From, v.Where = from, where
	return Step{
		Does: v.LookupRows + ": add " + traces,
		// By then, inserts that the materialized view did not see have ended.
		SQL: []string{"SELECT sleep(1)", s.render("fill", v)},
	}
}

// sampled is how many spans of a table are looked up, at least, if it has as many.
const sampled = 1000

// lacking returns the days of a table whose traces the lookup table lacks: it has only those of
// spans that were inserted while its view existed, and a TTL of its own.
func (s Schema) lacking(ctx context.Context, db *sql.DB, t table) (days []string, err error) {
	v := s.values()
	v.Of, v.Step, v.TTL = t.Name, max(1, t.Rows/sampled), t.expires()
	rows, err := read[struct{ Day string }](ctx, db, s.render("lacking", v))
	for _, row := range rows {
		days = append(days, row.Day)
	}
	return days, err
}

// fillDays returns the step that adds the traces of some days to the lookup table.
func (s Schema) fillDays(from string, days []string) Step {
	return s.fill("the traces of "+strings.Join(days, ", "), from,
		"toDate(Timestamp) IN ('"+strings.Join(days, "', '")+"')")
}

// onlyDrops matches a TTL that only drops spans after a time.
var onlyDrops = regexp.MustCompile(`^(?:toDate(?:Time)?\()?(?:Timestamp|Start|End)\)?` +
	` \+ toInterval(?:Second|Minute|Hour|Day|Week|Month|Quarter|Year)\(\d+\)$`)

// lookupTTL returns the TTL of the lookup table, which keeps a trace as long as its spans.
func (s Schema) lookupTTL(of table) string {
	if s.TTL != 0 {
		return s.ttlOf("End")
	}
	return strings.Replace(of.expires(), "Timestamp", "End", 1)
}

// expires returns when spans of the table expire, as an expression, or "".
func (t table) expires() string {
	for part := range strings.SplitSeq(t.ttl(), ", ") {
		if onlyDrops.MatchString(part) {
			return part
		}
	}
	return ""
}
