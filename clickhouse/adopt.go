package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
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
	Database   string     // "" is the connection's
	Table      string     // the one that holds the rows, not a Distributed one; "" is otel_traces
	Cluster    string     // "" is one server; else the statements have ON CLUSTER
	Projection Projection // of the new table, as in Schema

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
	if o.phase != Swapped {
		p.Steps = append([]Step{o.functions()}, o.steps("new", o.carried()...)...)
	}
	if !o.filled(o.server) {
		p.Steps = append(p.Steps, o.lookup(o.server, o.render("both"))...)
	}
	p.Steps = append(p.Steps, o.steps("views", "{columns}", list(quoteName, o.live.readable()))...)
	if o.phase == NotBegun {
		reattach, err := o.missing(ctx, "reattach")
		if err != nil {
			return p, err
		}
		trial := o.steps("trial")
		drops := len(trial[0].SQL) - 2
		trial[0].restore = trial[0].SQL[drops:]
		trial[0].advice = noExchange + Plan{Steps: p.Steps}.Script() +
			script(append([]string{o.render("rename")}, reattach...))
		p.Steps = append(trial, p.Steps...)
		o.phase = Prepared
	}
	p.Notes = append(o.grants(ctx), o.next())
	return p, nil
}

// noExchange introduces the statements of an adoption without EXCHANGE.
const noExchange = "this server cannot exchange tables; the way without: stop the Collector, run " +
	"these statements, and start it again. From RENAME on they are also the way back.\n"

// replaced matches the settings of the old table that the new one has with values of its own.
var replaced = regexp.MustCompile(
	`(index_granularity|index_granularity_bytes|min_compress_block_size|` +
		`default_compression_codec) = [^,]*(, |$)`)

// carried returns the placeholders for what the new table inherits by name. CREATE TABLE … AS
// carries over the rest.
func (o *adoption) carried() []string {
	ttl, theirs, ours := "", replaced.ReplaceAllString(o.live.settings(), ""), settings
	if o.live.ttl() != "" {
		ttl = "\nTTL " + o.live.ttl()
	}
	if strings.Contains(theirs, dropParts) {
		ours = strings.Replace(ours, dropParts+"1, ", "", 1)
	}
	projection := strings.Replace(o.Projection.element(), "PROJECTION",
		",\n    ADD PROJECTION IF NOT EXISTS", 1)
	return []string{"{uuid}", o.ownUUID(o.server, o.live.Engine), "{engine}", o.live.Engine,
		"{bucket}", bucket, "{desc}", o.descending(), "{ttl}", ttl,
		"{settings}", strings.TrimSuffix(ours+", "+theirs, ", "),
		"{live_comment}", quoteText(o.live.Comment), "{projection}", projection}
}

// grants returns a note with the grants that readers of the tables need, or that this user may not
// see them.
func (o *adoption) grants(ctx context.Context) []string {
	missing, err := o.missing(ctx, "grants")
	switch {
	case err != nil:
		return []string{"this user may not see grants: who may read only " + o.live.Name +
			" needs SELECT on " + o.other.Name + " and " + o.live.Name + historyEnd +
			", too, to see history"}
	case len(missing) == 0:
		return nil
	}
	return []string{"somebody with the rights has to run this:\n" + strings.TrimSpace(
		script(missing))}
}

// missing returns the statements for grants or row policies that one of the tables has and another
// one lacks.
func (o *adoption) missing(ctx context.Context, what string) (statements []string, err error) {
	all, err := read[struct{ SQL string }](ctx, o.db, o.access(what))
	for _, one := range all {
		statements = append(statements, one.SQL)
	}
	return statements, err
}

// access returns the query for missing grants or row policies.
func (o *adoption) access(what string) string {
	return o.render(what, "{other_text}", quoteText(o.quoted(o.other.Name)))
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
		side := map[Phase]string{Swapped: "new", Prepared: "old"}[to]
		p.Steps = o.steps("exchange", "{side}", side, "{new}", fmt.Sprint(to == Swapped))
		o.live, o.other = o.other, o.live
		o.live.Name, o.other.Name = o.other.Name, o.live.Name
		o.phase = to
		p.Notes = append(p.Notes, "spans of inserts that were running during the exchange may be "+
			"missing from what materialized views fill, except the lookup table")
	}
	p.Steps = append(p.Steps, o.fill("the traces of the last ten minutes, again",
		o.render("both"),
		"\n    AND Timestamp > now() - INTERVAL 10 MINUTE"))
	p.Notes = append(p.Notes, o.next())
	return p, nil
}

// next returns what an operator can do next.
func (o *adoption) next() string {
	switch {
	case o.phase == NotBegun:
		return "next: `adopt prepare`"
	case o.phase == Prepared && o.other.Rows > 0:
		return "next: `adopt swap`; or move the spans that were stored since the last swap out of " +
			o.other.Name + ": " + page
	case o.phase == Prepared:
		return "next: `adopt swap`; to cancel: " + page
	case o.phase == Swapped:
		return o.live.Name + historyEnd + " also shows the older spans, until they expire; " +
			"to go back: `adopt undo`; to finish: " + page
	}
	return "nothing is left to do"
}

// page has what is done by hand.
const page = "https://github.com/traceflake/traceflake/blob/main/docs/clickhouse.md#finish-or-cancel"

// stepText matches a comment for the operator in a template, and its statements.
var stepText = regexp.MustCompile(`((?m:^# .*\n)+)((?m:^[^#\n].*\n?)+)`)

// steps returns a template as steps. Lines that begin with # are comments for the operator.
func (o *adoption) steps(name string, more ...string) (all []Step) {
	for _, m := range stepText.FindAllStringSubmatch(o.render(name, more...), -1) {
		does := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(m[1]), "# "), "\n# ", "\n")
		all = append(all, Step{Does: does, SQL: strings.Split(strings.TrimSpace(m[2]), ";\n")})
	}
	return all
}
