package clickhouse

import (
	"regexp"
	"strings"
)

// filling is the comment of the materialized view until the lookup table has all older traces.
const filling = "traceflake is filling the table"

// lookup returns the steps that create the lookup table and the materialized view that fills it,
// and that add the traces of spans that were stored before the view existed.
func (s Schema) lookup(o server, from string) (steps []Step) {
	n := s.named()
	stored, feed := o.table(n.rows), o.table(n.feed)
	comment := func(text string) string { return s.alter(n.feed) + "MODIFY COMMENT " + text }
	if feed.exists() && !o.table(n.times).exists() {
		steps = append(steps, Step{Does: n.feed + " is marked as incomplete",
			SQL: []string{comment(quoteText(filling))}})
	}
	engine := s.engine(o, stored.Engine)
	steps = append(steps, exists(n.times, s.render("lookup", "{uuid}", s.ownUUID(o, engine),
		"{engine}", engine, "{ttl}", s.lookupTTL(stored))))
	if n.times != n.lookup {
		steps = append(steps, s.front(n.lookup, n.times))
	}
	if !stored.exists() || s.filled(o) {
		return append(steps, exists(n.feed, s.render("feed", "{comment}", "")))
	}
	fill := s.fill("all traces", from, "")
	fill.SQL = append(fill.SQL, comment("''"))
	return append(steps,
		exists(n.feed, s.render("feed", "{comment}", "\nCOMMENT "+quoteText(filling))), fill)
}

// filled reports whether the lookup table has the traces of all spans, and gets those of new ones.
func (s Schema) filled(o server) bool {
	n := s.named()
	feed := o.table(n.feed)
	return o.table(n.times).exists() && feed.exists() && feed.Comment != filling
}

// fill returns the step that adds traces of stored spans to the lookup table. Rows that it already
// has do no harm.
func (s Schema) fill(traces, from, which string) Step {
	if s.Cluster != "" {
		traces += " of this server's shard: run the INSERT on one server of each other shard, too"
	}
	return Step{
		Does: s.named().times + " has " + traces,
		// By then, inserts that the materialized view did not see have ended.
		SQL: []string{"SELECT sleep(1)", s.render("fill", "{from}", from, "{which}", which)},
	}
}

// onlyDrops matches a TTL that only drops spans after a time.
var onlyDrops = regexp.MustCompile(`^(?:toDate(?:Time)?\()?(?:Timestamp|Start|End)\)?` +
	` \+ toInterval(?:Second|Minute|Hour|Day|Week|Month|Quarter|Year)\(\d+\)$`)

// lookupTTL returns the TTL clause of the lookup table, which keeps a trace as long as its spans.
func (s Schema) lookupTTL(of table) string {
	if s.TTL != 0 {
		return s.ttlClause("End")
	}
	for part := range strings.SplitSeq(of.ttl(), ", ") {
		if onlyDrops.MatchString(part) {
			return "\nTTL " + strings.Replace(part, "Timestamp", "End", 1)
		}
	}
	return ""
}
