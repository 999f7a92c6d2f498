package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MinVersion is the oldest ClickHouse for tables, functions and queries, by its
// changelog: the first with the setting use_skip_indexes_on_data_read. Tests run with 26.7.
const MinVersion = "25.9"

// server is what a server shows of a schema's database and tables.
type server struct {
	database, databaseEngine string
	tables                   map[string]facts // by suffix
}

// facts are about a table, as in system.tables. The zero value is a table that does not exist.
type facts struct {
	engine, full, create, key, comment, rows, policy string
	ours                                             bool // it has the sorting key of the schema, as no exporter's has
	columns                                          []column
}

// ours is the condition for tables of the schema.
var ours = "sorting_key = " + quoteText(sortingKey)

// column is a column as in system.columns; its kind is DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL or "".
type column struct{ name, is, kind string }

func (t facts) exists() bool { return t.engine != "" }

func (t facts) mergeTree() bool { return strings.HasSuffix(t.engine, "MergeTree") }

// column returns the column with a name, or the zero value.
func (t facts) column(name string) column {
	i := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
	if i < 0 {
		return column{}
	}
	return t.columns[i]
}

// wrong returns the first of the exporter's columns that the table lacks, or has with another type,
// "" if there is none, and why.
func (t facts) wrong() (name, why string) {
	for _, c := range columns {
		if have := t.column(c[1]).is; have != c[2] {
			return c[1], fmt.Sprintf("has the type %q, not %s", have, c[2])
		}
	}
	return "", ""
}

// look reads what the server shows of the tables with these suffixes.
func (s Schema) look(ctx context.Context, db *sql.DB, suffixes ...string) (o server, err error) {
	if err := s.validate(); err != nil {
		return o, err
	}
	rows, err := query(ctx, db, "SELECT name, engine, version() FROM system.databases WHERE name = "+s.inDatabase())
	switch {
	case err != nil:
		return o, err
	case len(rows) == 0:
		return o, fmt.Errorf("clickhouse: there is no database %s", s.Database)
	case release(rows[0][2]) < release(MinVersion):
		return o, fmt.Errorf("clickhouse: the server is ClickHouse %s, which is too old: upgrade it to %s or newer", rows[0][2], MinVersion)
	}
	o = server{rows[0][0], rows[0][1], map[string]facts{}}
	// In one query: between two of them another operator may exchange the tables.
	suffix, names := map[string]string{}, []string{}
	for _, x := range suffixes {
		suffix[s.named(x)] = x
		names = append(names, quoteText(s.named(x)))
	}
	among := " IN (" + strings.Join(names, ", ") + ") AND database = " + s.inDatabase()
	if rows, err = query(ctx, db, "SELECT name, engine, engine_full, create_table_query, sorting_key, comment, toString(ifNull(total_rows, 0)), storage_policy, toString("+ours+")\n"+
		"FROM system.tables WHERE name"+among); err != nil {
		return o, err
	}
	for _, r := range rows {
		o.tables[suffix[r[0]]] = facts{r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8] == "1", nil}
	}
	if rows, err = query(ctx, db, "SELECT table, name, type, default_kind FROM system.columns WHERE table"+among+" ORDER BY table, position"); err != nil {
		return o, err
	}
	for _, r := range rows {
		if t := o.tables[suffix[r[0]]]; t.exists() {
			t.columns = append(t.columns, column{r[1], r[2], r[3]})
			o.tables[suffix[r[0]]] = t
		}
	}
	return o, nil
}

// release is a version as a number to compare.
func release(version string) int {
	var year, month int
	_, _ = fmt.Sscanf(version, "%d.%d", &year, &month)
	return year*100 + month
}

// distributed is the beginning of a Distributed table's engine.
var distributed = regexp.MustCompile(`^Distributed\('[^']*', '([^']*)', '([^']*)'`)

// timesView is in the definition of a view in the place of the lookup table.
var timesView = regexp.MustCompile(`(?s)TraceId.*Start.*End`)

// fits returns what the server shows of the schema's tables, and an error if there is something
// that Create would have to change, or that is in its way. A table with other indexes or granules
// is accepted: it returns the same rows.
func (s Schema) fits(ctx context.Context, db *sql.DB) (o server, err error) {
	for _, t := range s.indexed() {
		o, err := t.look(ctx, db, "")
		if err != nil {
			return o, err
		}
		if live := o.tables[""]; !live.mergeTree() || live.column("TraceId").is != "String" {
			return o, fmt.Errorf("clickhouse: there is no table %s with the exporter's column TraceId, of an engine like MergeTree: name the table that the Collector's exporter created", t.named(""))
		}
	}
	rows := s.rows()
	if o, err = s.look(ctx, db, "", rows, outlierTimes+rows, outlierFeed, lookup, lookupFeed); err != nil || s.Overlay {
		return o, err
	}
	left := func(suffix, is string) error {
		return fmt.Errorf("clickhouse: table %s %s and was left as it is: adopt it or choose another name", s.named(suffix), is)
	}
	stored, front := o.tables[rows], o.tables[""]
	if missing, _ := stored.wrong(); stored.exists() && (stored.key != sortingKey || missing != "") {
		return o, left(rows, "has another shape")
	}
	if m := distributed.FindStringSubmatch(front.full); s.Cluster != "" && front.exists() && (m == nil || m[2] != s.named(rows)) {
		return o, left("", "is not Distributed over "+s.named(rows))
	}
	if o.tables[lookup].mergeTree() && o.tables[lookupFeed].engine == "MaterializedView" {
		return o, nil // the exporter's, of an adoption
	}
	for _, suffix := range []string{lookup, lookupFeed} {
		if t := o.tables[suffix]; t.exists() && (t.engine != "View" || !timesView.MatchString(t.create)) {
			// The exporter's own lookup table would remain without a view that fills it.
			return o, fmt.Errorf("clickhouse: table %s is in the way of a view of that name: drop it", s.named(suffix))
		}
	}
	return o, nil
}
