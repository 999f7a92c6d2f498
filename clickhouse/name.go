package clickhouse

import (
	"cmp"
	"regexp"
	"strings"
)

// Names that would need escaping are mistakes, and other tools do not quote them.
var (
	plainName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	clusterName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,128}|\{[A-Za-z0-9_-]{1,128}\})$`)
)

// named is the table's name with a suffix, without quotes and database.
func (s Schema) named(suffix string) string {
	return cmp.Or(s.Table, "otel_traces") + suffix
}

// quoted is the full name of the table with a suffix.
func (s Schema) quoted(suffix string) string {
	table := quoteName(s.named(suffix))
	if s.Database == "" {
		return table
	}
	return quoteName(s.Database) + "." + table
}

// rows is the suffix of the table that holds the rows.
func (s Schema) rows() string {
	if s.Cluster == "" || s.Overlay {
		return ""
	}
	return "_local"
}

// inDatabase is an expression for the database's name.
func (s Schema) inDatabase() string {
	if s.Database == "" {
		return "currentDatabase()"
	}
	return quoteText(s.Database)
}

// at is the condition for rows about the table with a suffix, whose name a system table has in a
// column.
func (s Schema) at(column, suffix string) string {
	return "database = " + s.inDatabase() + " AND " + column + " = " + quoteText(s.named(suffix))
}

// onCluster is the clause for statements that run on the whole cluster.
func (s Schema) onCluster() string {
	if s.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + s.quotedCluster()
}

func (s Schema) quotedCluster() string {
	if s.Cluster[0] == '{' { // a macro
		return quoteText(s.Cluster)
	}
	return quoteName(s.Cluster)
}

// quoteName returns a text as a quoted identifier.
func quoteName(s string) string { return "`" + escape(s, "`") + "`" }

// quoteText returns a text as a string literal.
func quoteText(s string) string { return "'" + escape(s, "'") + "'" }

func escape(s, quote string) string {
	return strings.NewReplacer(`\`, `\\`, quote, `\`+quote).Replace(s)
}

// texts returns texts as a list of string literals.
func texts(all []string) string {
	list := make([]string, len(all))
	for i, text := range all {
		list[i] = quoteText(text)
	}
	return strings.Join(list, ", ")
}
