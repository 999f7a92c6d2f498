package clickhouse

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
)

// Adoption replaces an existing table with the exporter's columns by a table of the schema, under
// the same name and without copying spans. Its tables and views, by suffix:
//
//	(none)            the table that the Collector writes into and tools read
//	_other            alongside it: the new table before Swap, the old one after it
//	_all              a view of both, for tools that show what is older than the swap
//	_all_trace_id_ts  a view of the lookup table, by the name that tools look for next to _all
//
// Swap exchanges the names of the two tables, and so does Undo. The Collector, materialized views,
// grants and row policies follow the name, so both tables share the exporter's lookup table, which
// keeps its name. The spans of the old table expire by its TTL.
//
// Each method reads the server's tables and returns commented statements, which an operator can
// also run by hand. Each can be interrupted and repeated: it returns what is left to do. An
// adoption ends by hand, as docs/clickhouse.md says: no method drops a table of spans.
type Adoption struct {
	Database string // "" is the connection's
	Table    string // the one that holds the rows, not a Distributed one; "" is otel_traces
	Cluster  string // "" is one server; else the statements have ON CLUSTER

	// PoliciesChecked lets Prepare continue although this user may not see row policies: somebody
	// with the rights has run the query that Prepare returned.
	PoliciesChecked bool
}

// Prepare returns the statements that create the new table and the views, and the lookup table if
// it was dropped. Its notes contain the grants that the tables' readers need.
func (a Adoption) Prepare(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.observe(ctx, db, preparing)
	if err != nil || o.phase == Finished {
		return p, err
	}
	if len(o.missingFunctions()) > 0 {
		p.Steps = o.steps("functions", o.values())
	}
	if o.phase != Swapped {
		p.Steps = append(p.Steps, o.steps("adopt/new", o.carried())...)
	}
	lookup, err := o.lookup(ctx)
	if err != nil {
		return p, err
	}
	p.Steps = append(p.Steps, lookup...)
	v := o.values()
	v.Columns, v.Comment = o.live.readable(), ownComment
	p.Steps = append(p.Steps, o.steps("adopt/views", v)...)
	if o.phase == NotBegun {
		trial := o.steps("adopt/trial", v)
		trial[0].restore = trial[0].SQL[len(trial[0].SQL)-2:]
		trial[0].advice = noExchange
		p.Steps = append(trial, p.Steps...)
		o.phase = Prepared
	}
	p.Notes = append(append(o.grants(ctx), o.topK(ctx)...), o.next())
	return p, nil
}

const noExchange = "this server cannot exchange tables; the way without: " + page +
	"#without-exchange"

// replaced matches the settings of the old table that the new one has with values of its own.
var replaced = regexp.MustCompile(
	`(index_granularity|index_granularity_bytes|min_compress_block_size|` +
		`default_compression_codec) = [^,]*(, |$)`)

// carried returns the values for what the new table inherits by name. CREATE TABLE … AS carries
// over the rest.
func (o *adoption) carried() values {
	theirs, ours := replaced.ReplaceAllString(o.live.settings(), ""), settings
	if strings.Contains(theirs, dropParts) {
		ours = strings.Replace(ours, dropParts+"1, ", "", 1)
	}
	v := o.values()
	v.UUID, v.Engine = o.ownUUID(o.live.Engine), o.live.Engine
	v.TTL, v.Newest = o.live.ttl(), since(o.Version, newestFirst)
	v.Settings, v.Comment = strings.TrimSuffix(ours+", "+theirs, ", "), o.live.Comment
	return v
}

// grants returns a note with the grants that readers of the tables need, or that this user may not
// see them.
func (o *adoption) grants(ctx context.Context) []string {
	missing, err := o.missing(ctx, "grants")
	switch {
	case err != nil:
		return []string{"this user may not see grants: who may read only " + o.live.Name +
			" needs SELECT on " + o.other.Name + " and " + o.named().History +
			", too, to see history"}
	case len(missing) == 0:
		return nil
	}
	return []string{"somebody with the rights has to run this:\n" + strings.TrimSpace(
		script(missing))}
}

// missing returns the statements for grants or row policies that one of the tables has and another
// one lacks.
func (o *adoption) missing(ctx context.Context, what string) ([]string, error) {
	return texts(ctx, o.db, o.render("adopt/"+what, o.values()))
}

// Swap gives the new table the name into which the Collector writes.
func (a Adoption) Swap(ctx context.Context, db *sql.DB) (Plan, error) {
	return a.exchange(ctx, db, swapping, Swapped)
}

// Undo gives the old table its name back, whatever was changed meanwhile.
func (a Adoption) Undo(ctx context.Context, db *sql.DB) (Plan, error) {
	return a.exchange(ctx, db, undoing, Prepared)
}

// exchange returns the plan after which the adoption is in the phase.
func (a Adoption) exchange(ctx context.Context, db *sql.DB, op operation, to Phase) (
	p Plan, err error) {
	o, err := a.observe(ctx, db, op)
	if err != nil {
		return p, err
	}
	if o.phase != to {
		v := o.values()
		v.New = to == Swapped
		p.Steps = o.steps("adopt/exchange", v)
		o.live, o.other = o.other, o.live
		o.phase = to
		p.Notes = append(p.Notes, "materialized views may miss spans that were being inserted "+
			"during the exchange")
	}
	p.Steps = append(p.Steps, o.fill("the traces of the last ten minutes once more",
		"Timestamp > now() - INTERVAL 10 MINUTE")...)
	p.Notes = append(p.Notes, o.next())
	return p, nil
}

// next returns what an operator can do next.
func (o *adoption) next() string {
	switch {
	case o.phase == NotBegun:
		return "next: `adopt prepare`"
	case o.phase == Prepared && o.other.Rows > 0:
		return "next: `adopt swap`; or move the spans that were stored since the last swap out " +
			"of " + o.named().Other + ": " + page + "#move-a-day"
	case o.phase == Prepared:
		return "next: `adopt swap`; to cancel: " + page + "#finish-or-cancel"
	case o.phase == Swapped:
		return o.named().History + " also shows the older spans, until they expire; " +
			"to go back: `adopt undo`; to finish: " + page + "#finish-or-cancel"
	}
	return "nothing is left to do"
}

// page has what is done by hand.
const page = "https://github.com/traceflake/traceflake/blob/main/docs/clickhouse.md"

// stepText matches a comment for the operator in a template, and its statements.
var stepText = regexp.MustCompile(`((?m:^# .*\n)+)((?m:^[^#\n].*\n?)+)`)

// steps returns a template as steps. Lines that begin with # are comments for the operator.
func (o *adoption) steps(name string, v values) (all []Step) {
	for _, m := range stepText.FindAllStringSubmatch(o.render(name, v), -1) {
		does := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(m[1]), "# "), "\n# ", "\n")
		all = append(all, Step{Does: does, SQL: strings.Split(strings.TrimSpace(m[2]), ";\n")})
	}
	return all
}
