package clickhouse

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
)

// lookup returns the steps after which there are a lookup table, the materialized view that fills
// it, and the traces of all stored spans.
func (o *adoption) lookup(ctx context.Context) (steps []Step, err error) {
	v := o.values()
	if !o.hasLookup() || o.creates { // on a cluster, a new server lacks them
		v.Engine = o.engine(o.live.Engine)
		v.UUID = o.ownUUID(v.Engine)
		v.TTL = cmp.Or(o.ttlOf("End"), strings.Replace(o.live.expires(), "Timestamp", "End", 1))
		steps = o.steps("lookup", v)
	}
	if !o.hasLookup() && o.live.exists() {
		return append(steps, o.fill("all traces", "")...), nil
	}
	days, err := o.lackingDays(ctx)
	if len(days) > 0 {
		steps = append(steps, o.fill("the traces of "+strings.Join(days, ", "),
			"toDate(Timestamp) IN ('"+strings.Join(days, "', '")+"')")...)
	}
	return steps, err
}

// hasLookup reports whether the lookup table and its view exist. If they were created, but not
// filled, the table lacks days.
func (o *adoption) hasLookup() bool {
	n := o.named()
	return o.table(n.LookupRows).exists() && o.table(n.LookupView).exists()
}

// fill returns the step that adds traces of stored spans to the lookup table.
func (o *adoption) fill(traces, where string) []Step {
	v := o.values()
	v.Traces, v.Where, v.Both = traces, where, !o.creates
	return o.steps("fill", v)
}

// sampled is how many spans of a table are looked up, at least, if it has as many.
const sampled = 1000

// lackingDays returns the days whose traces the lookup table lacks: it has only those of spans that
// were inserted while its view existed, and a TTL of its own.
func (o *adoption) lackingDays(ctx context.Context) (days []string, err error) {
	for _, t := range []table{o.live, o.other} {
		if err == nil && t.mergeTree() && o.hasLookup() {
			v := o.values()
			v.Of, v.Step, v.TTL = t.Name, max(1, t.Rows/sampled), t.expires()
			var more []string
			more, err = texts(ctx, o.db, o.render("lacking", v))
			days = append(days, more...)
		}
	}
	slices.Sort(days)
	return slices.Compact(days), err
}

// onlyDrops matches a TTL that only drops spans after a time.
var onlyDrops = regexp.MustCompile(`^(?:toDate(?:Time)?\()?(?:Timestamp|Start|End)\)?` +
	` \+ toInterval(?:Second|Minute|Hour|Day|Week|Month|Quarter|Year)\(\d+\)$`)

// expires returns when spans of the table expire, as an expression, or "".
func (t table) expires() string {
	for part := range strings.SplitSeq(t.ttl(), ", ") {
		if onlyDrops.MatchString(part) {
			return part
		}
	}
	return ""
}
