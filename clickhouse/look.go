package clickhouse

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// minVersion is the oldest ClickHouse for tables, functions and queries, by its
// changelog: the first with the setting use_skip_indexes_on_data_read. Tests run with 26.7.
const minVersion = "25.9"

// server is a snapshot of a database and some of its tables, as reported by one server.
type server struct {
	database, databaseEngine string
	tables                   []table
}

// table is a table or view. If it does not exist, only its name is set.
type table struct {
	Name         string
	UUID         string
	Engine       string
	Full         string // engine, keys, TTL and settings
	Definition   string // CREATE TABLE; empty if the server lost it
	SortingKey   string `json:"sorting_key"`
	PartitionKey string `json:"partition_key"`
	Comment      string
	Policy       string
	Ours         uint8 // 1 if it has the sorting key of our layout, unlike any exporter's table
	Columns      []column
	Rows         uint64 `json:",string"`
	Bytes        uint64 `json:",string"`
	Newest       string // partition
	Expires      int64  `json:",string"` // the Unix time at which the last span expires, or 0
}

// column is a column. Its kind is DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL or "".
type column struct{ Name, Type, Kind string }

func (t table) exists() bool    { return t.Engine != "" }
func (t table) ours() bool      { return t.Ours == 1 }
func (t table) mergeTree() bool { return strings.HasSuffix(t.Engine, "MergeTree") }

// column returns the column with a name, or the zero value.
func (t table) column(name string) column {
	i := slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == name })
	if i < 0 {
		return column{}
	}
	return t.Columns[i]
}

// wrong returns the first of the exporter's columns that the table lacks, or has with another type,
// and the reason, or "".
func (t table) wrong() (name, why string) {
	for _, c := range columns {
		if have := t.column(c[1]).Type; have != c[2] {
			return c[1], fmt.Sprintf("has the type %q, not %s", have, c[2])
		}
	}
	return "", ""
}

// table returns the table with a name.
func (o server) table(name string) table {
	i := slices.IndexFunc(o.tables, func(t table) bool { return t.Name == name })
	if i < 0 {
		return table{Name: name}
	}
	return o.tables[i]
}

// look returns the server's tables with certain names, or with names that begin with certain texts.
// It sends one query, since another operator may exchange tables between two.
func (s Schema) look(
	ctx context.Context, db *sql.DB, names, beginnings []string,
) (o server, err error) {
	if err := s.validate(); err != nil {
		return o, err
	}
	found, err := read[struct{ Name, Engine, Version string }](ctx, db,
		"SELECT name, engine, version() AS version FROM system.databases WHERE name = "+
			s.inDatabase())
	switch {
	case err != nil:
		return o, err
	case len(found) == 0:
		return o, fmt.Errorf("clickhouse: there is no database %s", s.Database)
	case release(found[0].Version) < release(minVersion):
		return o, fmt.Errorf("clickhouse: the server is ClickHouse %s, which is too old: upgrade "+
			"it to %s or newer",
			found[0].Version, minVersion)
	}
	o = server{database: found[0].Name, databaseEngine: found[0].Engine}
	o.tables, err = read[table](ctx, db, s.render("adopt/tables",
		"{database}", quoteText(o.database),
		"{names}", texts(names), "{beginnings}", texts(beginnings),
		"{parts}", s.everywhere("cluster", "system.parts"),
		"{sorting_key}", quoteText(sortingKey)))
	return o, err
}

// everywhere returns an expression for a system table of this server, or of the cluster by one of
// ClickHouse's table functions.
func (s Schema) everywhere(function, table string) string {
	if s.Cluster == "" {
		return table
	}
	return function + "(" + quoteText(s.Cluster) + ", " + table + ")"
}

// release returns a version as a number to compare.
func release(version string) int {
	var year, month int
	_, _ = fmt.Sscanf(version, "%d.%d", &year, &month)
	return year*100 + month
}

// read returns the rows of a query, whose columns are the fields of T by their names in JSON.
func read[T any](ctx context.Context, db *sql.DB, query string) (all []T, err error) {
	const doing = "reading the server's tables"
	rows, err := db.QueryContext(ctx, "SELECT formatRowNoNewline('JSONEachRow', *) FROM "+
		"(\n"+query+"\n)")
	if err != nil {
		return nil, failed(doing, err)
	}
	defer func() { _ = rows.Close() }()
	for err == nil && rows.Next() {
		var line string
		var row T
		if err = rows.Scan(&line); err == nil {
			err = json.Unmarshal([]byte(line), &row)
		}
		all = append(all, row)
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		return nil, failed(doing, err)
	}
	return all, nil
}

// distributed matches the beginning of a Distributed table's engine.
var distributed = regexp.MustCompile(`^Distributed\('[^']*', '([^']*)', '([^']*)'`)

// fits returns the server's tables, and an error if Create would have to change one of them, or if
// another object has a table's name. A table with other indexes or granules is accepted, because it
// returns the same rows.
func (s Schema) fits(ctx context.Context, db *sql.DB) (o server, err error) {
	n := s.named()
	if o, err = s.look(ctx, db, []string{n.spans, n.rows, n.lookup, n.times, n.feed, n.logs},
		nil); err != nil {
		return o, err
	}
	for _, name := range s.indexed() {
		if t := o.table(name); !t.mergeTree() || t.column("TraceId").Type != "String" {
			return o, fmt.Errorf("clickhouse: there is no table %s with the exporter's column "+
				"TraceId, of an engine like MergeTree: name the table that the Collector's "+
				"exporter created", name)
		}
	}
	stored, times, feed := o.table(n.rows), o.table(n.times), o.table(n.feed)
	left := func(t table, is, do string) (server, error) {
		return o, fmt.Errorf("clickhouse: table %s %s; it was not changed: %s", t.Name, is, do)
	}
	const adopt = "adopt it or choose another name"
	if missing, _ := stored.wrong(); !s.Overlay && stored.exists() &&
		(!stored.ours() || missing != "") {
		return left(stored, "has another shape", adopt)
	}
	for _, of := range [][2]table{{o.table(n.spans), stored}, {o.table(n.lookup), times}} {
		front, rows := of[0], of[1]
		if m := distributed.FindStringSubmatch(front.Full); front.Name != rows.Name &&
			front.exists() && (m == nil || m[2] != rows.Name) {
			return left(front, "is not Distributed over "+rows.Name, adopt)
		}
	}
	if times.exists() && (!times.mergeTree() || times.column("TraceId").Type != "String" ||
		times.column("Start").Type == "" || times.column("End").Type == "") {
		return left(times, "is not the exporter's lookup table", "rename or drop it")
	}
	if feed.exists() && feed.Engine != "MaterializedView" {
		return left(feed, "is not a materialized view", "rename or drop it")
	}
	return o, nil
}
