package ddl

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	plainName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	clusterName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,128}|\{[A-Za-z0-9_-]{1,128}\})$`)
)

// Validate refuses names that would need escaping: they are mistakes, and other
// tools do not quote them.
func (t Table) Validate() error {
	if t.Database != "" && !plainName.MatchString(t.Database) {
		return fmt.Errorf("clickhouse: database %q: a name has 1 to 128 letters, digits, _ or -", t.Database)
	}
	if !plainName.MatchString(t.Named("")) {
		return fmt.Errorf("clickhouse: table %q: a name has 1 to 128 letters, digits, _ or -; "+
			"give the database apart from it", t.Name)
	}
	if t.Cluster != "" && !clusterName.MatchString(t.Cluster) {
		return fmt.Errorf("clickhouse: cluster %q: a name has 1 to 128 letters, digits, _ or -, "+
			"or is a macro as in {cluster}", t.Cluster)
	}
	if t.TTL < 0 || t.TTL%time.Second != 0 {
		return fmt.Errorf("clickhouse: TTL %v: it is a whole number of seconds, or 0 to keep spans for ever", t.TTL)
	}
	if t.TTL > maxTTL {
		return fmt.Errorf("clickhouse: TTL %v: ClickHouse would count past the year 2106 and drop spans at once; "+
			"50 years is the most", t.TTL)
	}
	return nil
}

// maxTTL keeps a span's time plus TTL within a DateTime, which wraps around.
const maxTTL = 50 * 365 * 24 * time.Hour

// Named is the table's name with a suffix, without quotes and database.
func (t Table) Named(suffix string) string {
	if t.Name == "" {
		return "otel_traces" + suffix
	}
	return t.Name + suffix
}

// Quoted is the full name of the table with a suffix.
func (t Table) Quoted(suffix string) string {
	table := QuoteName(t.Named(suffix))
	if t.Database == "" {
		return table
	}
	return QuoteName(t.Database) + "." + table
}

// Rows is the suffix of the table that holds the rows.
func (t Table) Rows() string {
	if t.Cluster == "" {
		return ""
	}
	return "_local"
}

// InDatabase is an expression for the database's name.
func (t Table) InDatabase() string {
	if t.Database == "" {
		return "currentDatabase()"
	}
	return QuoteText(t.Database)
}

// OnCluster is the clause for statements that run on the whole cluster.
func (t Table) OnCluster() string {
	switch {
	case t.Cluster == "":
		return ""
	case t.Cluster[0] == '{':
		return " ON CLUSTER " + QuoteText(t.Cluster)
	default:
		return " ON CLUSTER " + QuoteName(t.Cluster)
	}
}

// QuoteName returns a text as a quoted identifier.
func QuoteName(s string) string { return "`" + escape(s, "`") + "`" }

// QuoteText returns a text as a string literal.
func QuoteText(s string) string { return "'" + escape(s, "'") + "'" }

func escape(s, quote string) string {
	return strings.NewReplacer(`\`, `\\`, quote, `\`+quote).Replace(s)
}
