package clickhouse

import (
	"embed"
	"regexp"
	"strings"
	texttemplate "text/template"
)

//go:embed sql
var files embed.FS

var comment = regexp.MustCompile(`(?m)^(--.*)?\n`)

// template returns an SQL file without its comments and empty lines.
func template(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // no such file: a mistake here
	}
	return strings.TrimSpace(comment.ReplaceAllString(string(text), ""))
}

// values are what the SQL files are filled with. Each file uses some of them.
type values struct {
	names
	Columns []string // of the exporter, or those that a view shows

	Key string // the sorting key of our layout

	Database  string // an expression for the name of the database
	Cluster   string
	OnCluster string // a clause, or ""

	// a new table
	Engine, UUID, Settings, Projection, Comment string
	TTL                                         string // an expression, or ""
	Newest                                      bool   // first
	Front, Behind                               string // a Distributed table, and the one behind it

	Of        string // the table that a query is about
	Partition string // its newest one
	Step      uint64 // of how many rows one is looked at
	Traces    string // which are added to the lookup table
	Where     string // a condition on them
	Both      bool   // of the other table, too
	New       bool   // the new table gets the name
}

// values returns the values that follow from the schema.
func (s Schema) values() values {
	v := values{names: s.named(), Key: sortingKey, Database: "currentDatabase()",
		Cluster: s.Cluster, OnCluster: s.onCluster()}
	if s.Database != "" {
		v.Database = quoteText(s.Database)
	}
	for _, c := range columns {
		v.Columns = append(v.Columns, c.name)
	}
	return v
}

// render returns an SQL file filled with values: table is the quoted full name of a table, name a
// quoted identifier, and text a string literal.
func (s Schema) render(file string, v values) string {
	t := texttemplate.Must(texttemplate.New(file).Funcs(texttemplate.FuncMap{
		"table": s.quoted, "name": quoteName, "text": quoteText,
	}).Parse(template(file)))
	for _, part := range []string{"layout", "charts", "columns"} { // which some files contain
		texttemplate.Must(t.New(part).Parse(template(part)))
	}
	var sql strings.Builder
	if err := t.Execute(&sql, v); err != nil {
		panic(err) // a mistake in the file
	}
	return sql.String()
}
