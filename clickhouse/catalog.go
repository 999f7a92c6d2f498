package clickhouse

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"regexp"
	"strings"
)

// minVersion is the oldest ClickHouse for tables, functions and queries, by its changelog: the
// first with the setting propagate_types_serialization_versions_to_nested_types. Tests run with
// 26.7.
const minVersion = "26.3"

// catalog holds the tables of a schema and those with similar names, as one statement found them.
type catalog struct {
	databaseInfo
	tables []table
}

// databaseInfo is what a server says of a database and of itself.
type databaseInfo struct {
	Database, Version string

	DatabaseEngine string   `json:"database_engine"`
	Functions      []string // of users
}

// table is a table or view. If it does not exist, only its name is set.
type table struct {
	Name       string
	UUID       string
	Engine     string
	Full       string // engine, keys, TTL and settings
	Definition string // CREATE TABLE; empty if the server lost it
	Comment    string
	Ours       uint8 // 1 if it has the sorting key of our layout, unlike any exporter's table
	Columns    []column
	Rows       uint64 `json:",string"`
	Newest     string // partition
}

// column is a column. Its kind is DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL or "".
type column struct{ Name, Type, Kind string }

func (t table) exists() bool    { return t.Engine != "" }
func (t table) ours() bool      { return t.Ours == 1 }
func (t table) mergeTree() bool { return strings.HasSuffix(t.Engine, "MergeTree") }

// column returns the column with a name, or the zero value.
func (t table) column(name string) column {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	return column{}
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

// definitions returns the names or the whole definitions of the columns. A full disk may leave a
// table without its own.
func (t table) definitions(whole bool) (all []string) {
	if m := columnList.FindStringSubmatch(t.Definition); whole && m != nil {
		return strings.Split(m[1], ", `")
	}
	for _, c := range t.Columns {
		all = append(all, c.Name+"`")
	}
	return all
}

// columnList matches the columns in the definition of a MergeTree.
var columnList = regexp.MustCompile(
	"(?s)\\(`(.*?)(?:, (?:INDEX|PROJECTION|CONSTRAINT) .*)?\\) ENGINE = ")

// fills reports whether t is a materialized view that fills a table from another one.
func (t table) fills(to, from string) bool {
	m := viewParts.FindStringSubmatch(strings.ReplaceAll(t.Definition, "`", ""))
	return t.Engine == "MaterializedView" && m != nil && m[1] == to && m[2] == from
}

// viewParts matches the names of the tables in the definition of a materialized view.
var viewParts = regexp.MustCompile(
	`(?s)^CREATE MATERIALIZED VIEW .*? TO [^ .]+\.([^ ]+) .*? FROM [^ .]+\.([^ ;)]+)`)

// isLookup reports whether t is like the exporter's lookup table.
func (t table) isLookup() bool {
	times := strings.Contains(t.column("Start").Type, "DateTime") &&
		strings.Contains(t.column("End").Type, "DateTime")
	return t.mergeTree() && t.column("TraceId").Type == "String" && times
}

// table returns the table with a name.
func (o catalog) table(name string) table {
	for _, t := range o.tables {
		if t.Name == name {
			return t
		}
	}
	return table{Name: name}
}

// readCatalog reads the tables, all in one statement: another operator may exchange them between
// two.
func (s Schema) readCatalog(ctx context.Context, db *sql.DB) (o catalog, err error) {
	if err := s.validate(); err != nil {
		return o, err
	}
	found, err := read[databaseInfo](ctx, db, s.render("database", s.values()))
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
	o.databaseInfo, s.Database = found[0], found[0].Database
	o.tables, err = read[table](ctx, db, s.render("catalog", s.values()))
	return o, err
}

// read returns the rows of a query, whose columns are the fields of T by their names in JSON.
func read[T any](ctx context.Context, db *sql.DB, query string) ([]T, error) {
	lines, err := texts(ctx, db, "SELECT formatRowNoNewline('JSONEachRow', *) FROM (\n"+query+"\n)")
	all := make([]T, len(lines))
	for i, line := range lines {
		err = cmp.Or(err, json.Unmarshal([]byte(line), &all[i]))
	}
	return all, err
}

// texts returns the only column of a query.
func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	defer func() {
		if err != nil {
			all, err = nil, serverError{"reading the server's tables", err}
		}
	}()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for err == nil && rows.Next() {
		var text string
		err = rows.Scan(&text)
		all = append(all, text)
	}
	return all, cmp.Or(err, rows.Err())
}
