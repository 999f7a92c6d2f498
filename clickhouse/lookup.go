package clickhouse

import "strings"

// lookup returns the steps that create the lookup table, if it is missing, and the materialized
// view that fills it. If spans may exist, the steps also fill the lookup table from them: a missing
// view means that the lookup table was dropped, or that Create was interrupted. So the view is
// created after that, and then the spans stored meanwhile are added.
func (s Schema) lookup(o server, from string) []Step {
	n := s.named()
	stored := o.table(n.rows)
	engine := s.engine(o, stored.Engine)
	steps := []Step{exists(n.times, s.render("lookup", "{uuid}", s.ownUUID(o, engine),
		"{engine}", engine, "{ttl}", s.lookupTTL(stored)))}
	if n.times != n.lookup {
		steps = append(steps, s.front(n.lookup, n.times))
	}
	feed := exists(n.feed, s.render("feed"))
	if !stored.exists() || o.table(n.feed).exists() {
		return append(steps, feed)
	}
	return append(steps, s.fill(from), feed, s.fillRecent(from))
}

// fill returns the step that adds all traces of tables to the lookup table.
func (s Schema) fill(from string) Step {
	return Step{Does: s.named().times + " has all traces",
		SQL: []string{s.render("fill", "{from}", from, "{which}", "")}}
}

// fillRecent returns the step that adds the traces of spans that the materialized view may have
// missed: they were stored before it existed, or during an exchange.
func (s Schema) fillRecent(from string) Step {
	return Step{Does: s.named().times + " has the traces of the last ten minutes (again)",
		SQL: []string{s.render("fill", "{from}", from,
			"{which}", "\n    AND Timestamp > now() - INTERVAL 10 MINUTE")}}
}

// lookupTTL returns the TTL clause of the lookup table, which keeps a trace as long as its spans.
func (s Schema) lookupTTL(of table) string {
	if s.TTL != 0 {
		return s.ttlClause("End")
	}
	for _, part := range split(clause(of.Full, "TTL")) {
		if onlyDrops.MatchString(part) {
			return "\nTTL " + strings.Replace(part, "Timestamp", "End", 1)
		}
	}
	return ""
}
