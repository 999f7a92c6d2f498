package clickhouse

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// minVersion is the oldest ClickHouse for tables, functions and queries, by its changelog: the
// first with the setting propagate_types_serialization_versions_to_nested_types. Tests run with
// 26.7.
const minVersion = "26.3"

// server is a snapshot of a schema's tables and those with similar names, as reported by one
// server.
type server struct {
	database, databaseEngine string
	version                  string
	tables                   []table
}

// table is a table or view. If it does not exist, only its name is set.
type table struct {
	Name       string
	UUID       string
	Engine     string
	Full       string // engine, keys, TTL and settings
	Definition string // CREATE TABLE; empty if the server lost it
	SortingKey string `json:"sorting_key"`
	Comment    string
	Ours       uint8 // 1 if it has the sorting key of our layout, unlike any exporter's table
	Columns    []column
	Rows       uint64 `json:",string"`
	Newest     string // partition
}

// column is a column. Its kind is DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL or "".
type column struct{ Name, Type, Kind, Comment string }

// stored reports whether the column exists on disk.
func (c column) stored() bool { return c.Name != "" && c.Kind != "ALIAS" && c.Kind != "EPHEMERAL" }

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

// engineParts matches the parts of a MergeTree's engine: its TTL and its settings.
var engineParts = regexp.MustCompile(`(?s)^.*?(?: TTL (.*?))?(?: SETTINGS (.*))?$`)

func (t table) ttl() string      { return engineParts.FindStringSubmatch(t.Full)[1] }
func (t table) settings() string { return engineParts.FindStringSubmatch(t.Full)[2] }

// readable returns the names of the columns that can be read.
func (t table) readable() (names []string) {
	for _, c := range t.Columns {
		if c.Kind != "EPHEMERAL" {
			names = append(names, c.Name)
		}
	}
	return names
}

// distributed matches the beginning of a Distributed table's engine.
var distributed = regexp.MustCompile(`^Distributed\('[^']*', '([^']*)', '([^']*)'`)

// distributes returns the database and the name of the table in front of which a Distributed table
// is. They are "" for other tables.
func (t table) distributes() (database, name string) {
	if m := distributed.FindStringSubmatch(t.Full); m != nil {
		return m[1], m[2]
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

// look returns the server's tables. It sends one query for all of them, since another operator may
// exchange tables between two.
func (s Schema) look(ctx context.Context, db *sql.DB) (o server, err error) {
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
		return o, errorf("there is no database %s", s.Database)
	case !since(found[0].Version, minVersion):
		return o, errorf("the server is ClickHouse %s, which is too old: upgrade "+
			"it to %s or newer",
			found[0].Version, minVersion)
	}
	s.Database = found[0].Name
	o = server{database: s.Database, databaseEngine: found[0].Engine,
		version: found[0].Version}
	o.tables, err = read[table](ctx, db, s.render("tables"))
	return o, err
}

// read returns the rows of a query, whose columns are the fields of T by their names in JSON.
func read[T any](ctx context.Context, db *sql.DB, query string) (all []T, err error) {
	defer func() {
		if err != nil {
			all, err = nil, serverError{"reading the server's tables", err}
		}
	}()
	rows, err := db.QueryContext(ctx, "SELECT formatRowNoNewline('JSONEachRow', *) FROM "+
		"(\n"+query+"\n)")
	if err != nil {
		return nil, err
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
	return all, cmp.Or(err, rows.Err())
}

// fits returns the server's tables, and an error if Create would have to change one of them, or if
// another object has a table's name. A table with other indexes or granules is accepted, because it
// returns the same rows.
func (s Schema) fits(ctx context.Context, db *sql.DB) (o server, err error) {
	if o, err = s.look(ctx, db); err != nil {
		return o, err
	}
	n := s.named()
	stored, times, feed := o.table(n.rows), o.table(n.times), o.table(n.feed)
	fronts := func(name, rows string) bool {
		_, of := o.table(name).distributes()
		return name == rows || of == rows
	}
	conflict := stored.conflict()
	const adopt, drop = "adopt it or choose another name", "rename or drop it"
	for _, of := range []struct {
		table
		fits   bool
		is, do string
	}{
		{stored, conflict == "", conflict, adopt},
		{o.table(n.spans), fronts(n.spans, n.rows), "is not Distributed over " + n.rows, adopt},
		{o.table(n.lookup), fronts(n.lookup, n.times), "is not Distributed over " + n.times, adopt},
		{times, times.mergeTree() && times.column("TraceId").Type == "String" &&
			times.column("Start").Type != "" && times.column("End").Type != "",
			"is not the exporter's lookup table", drop},
		{feed, feed.Engine == "MaterializedView", "is not a materialized view", drop},
	} {
		if of.exists() && !of.fits {
			return o, errorf("table %s %s; it was not changed: %s", of.Name, of.is,
				of.do)
		}
	}
	return o, nil
}
