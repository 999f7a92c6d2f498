package clickhouse

import (
	"cmp"
	"regexp"
	"strings"
)

// Names that need quoting are refused: they are usually typos, and other tools do not quote.
var (
	plainName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	clusterName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,128}|\{[A-Za-z0-9_-]{1,128}\})$`)
)

// names are those of a schema's tables and views. They begin with spans.
type names struct {
	spans, lookup string // which tools read: the spans, and when each trace began and ended
	rows, times   string // which hold the rows of both; other tables on a cluster only
	feed          string // the materialized view that fills times from rows
}

// named returns the names. The lookup table and its view have the exporter's names.
func (s Schema) named() names {
	const lookup = "_trace_id_ts"
	n := names{spans: cmp.Or(s.Table, "otel_traces")}
	n.rows = n.spans
	if s.Cluster != "" && !s.local {
		n.rows += "_local"
	}
	n.lookup, n.times, n.feed = n.spans+lookup, n.rows+lookup, n.rows+lookup+"_mv"
	return n
}

// quoted returns the full name of a table.
func (s Schema) quoted(name string) string {
	if s.Database == "" {
		return quoteName(name)
	}
	return quoteName(s.Database) + "." + quoteName(name)
}

// inDatabase returns an expression for the database's name.
func (s Schema) inDatabase() string {
	if s.Database == "" {
		return "currentDatabase()"
	}
	return quoteText(s.Database)
}

// onCluster returns the clause for statements that run on the whole cluster.
func (s Schema) onCluster() string {
	if s.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + quoteName(s.Cluster)
}

// everywhere returns an expression for a system table of this server, or of the cluster by one of
// ClickHouse's table functions.
func (s Schema) everywhere(function, table string) string {
	if s.Cluster == "" {
		return table
	}
	return function + "(" + quoteText(s.Cluster) + ", " + table + ")"
}

// quoteName returns a text as a quoted identifier.
func quoteName(s string) string { return quote("`", s) }

// quoteText returns a text as a string literal.
func quoteText(s string) string { return quote("'", s) }

func quote(mark, s string) string {
	return mark + strings.NewReplacer(`\`, `\\`, mark, `\`+mark).Replace(s) + mark
}

// list returns texts as a list, each one quoted.
func list(quote func(string) string, texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return strings.Join(quoted, ", ")
}
