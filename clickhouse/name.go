package clickhouse

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

// validate refuses what would need more than quotes: such names come from
// mistakes, and other tools do not quote them.
func (s Schema) validate() error {
	if s.Database != "" && !plainName.MatchString(s.Database) {
		return fmt.Errorf("clickhouse: database %q: a name has 1 to 128 letters, digits, _ or -", s.Database)
	}
	if !plainName.MatchString(s.table()) {
		return fmt.Errorf("clickhouse: table %q: a name has 1 to 128 letters, digits, _ or -; give the database apart from it", s.Table)
	}
	if s.Cluster != "" && !clusterName.MatchString(s.Cluster) {
		return fmt.Errorf("clickhouse: cluster %q: a name has 1 to 128 letters, digits, _ or -, or is a macro as in {cluster}", s.Cluster)
	}
	if s.Layout != Owned && s.Layout != Overlay {
		return fmt.Errorf("clickhouse: layout %d: it is Owned or Overlay", s.Layout)
	}
	if s.TTL < 0 || s.TTL%1e9 != 0 {
		return fmt.Errorf("clickhouse: TTL %v: it is a whole number of seconds, or 0 to keep spans for ever", s.TTL)
	}
	if s.TTL > maxTTL {
		return fmt.Errorf("clickhouse: TTL %v: ClickHouse would count past the year 2106 and drop spans at once; 50 years is the most", s.TTL)
	}
	return nil
}

// maxTTL keeps a span's time plus TTL within a DateTime, which wraps around.
const maxTTL = 50 * 365 * 24 * time.Hour

func (s Schema) table() string {
	if s.Table == "" {
		return "otel_traces"
	}
	return s.Table
}

// name is the quoted name of the table with a suffix.
func (s Schema) name(suffix string) string {
	table := quoteName(s.table() + suffix)
	if s.Database == "" {
		return table
	}
	return quoteName(s.Database) + "." + table
}

// local is the suffix of the table that holds the rows.
func (s Schema) local() string {
	if s.Cluster == "" {
		return ""
	}
	return "_local"
}

// database is an expression for the database's name.
func (s Schema) database() string {
	if s.Database == "" {
		return "currentDatabase()"
	}
	return quoteText(s.Database)
}

func onCluster(cluster string) string {
	switch {
	case cluster == "":
		return ""
	case cluster[0] == '{':
		return " ON CLUSTER " + quoteText(cluster)
	default:
		return " ON CLUSTER " + quoteName(cluster)
	}
}

func quoteName(s string) string { return "`" + escape(s, "`") + "`" }
func quoteText(s string) string { return "'" + escape(s, "'") + "'" }

func escape(s, quote string) string {
	return strings.NewReplacer(`\`, `\\`, quote, `\`+quote).Replace(s)
}
