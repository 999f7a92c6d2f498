package clickhouse

import (
	"cmp"
	"regexp"
	"strings"
)

// plainName matches names that need no quoting. Others are refused: they are usually typos, and
// other tools do not quote.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,128}$`)

// macro matches a cluster's name that is a macro of the servers.
var macro = regexp.MustCompile(`^\{(.+)\}$`)

// names are those of a schema's tables and views. They begin with Spans.
type names struct {
	Spans, Lookup    string // which tools read: the spans, and when each trace began and ended
	Rows, LookupRows string // which hold the rows of both; other tables on a cluster only
	LookupView       string // the materialized view that fills LookupRows from Rows

	// of an adoption
	Other                  string // the new table before the swap, the old one after it
	History, HistoryLookup string // views of both tables and of the lookup table
	Dropped                string // what was Other, to be dropped
	TrialA, TrialB         string // which prepare exchanges to see whether the server can
}

// named returns the names. The lookup table and its view have the exporter's names.
func (s Schema) named() names {
	const lookup = "_trace_id_ts"
	spans := cmp.Or(s.Table, "otel_traces")
	rows := spans
	if s.Cluster != "" && !s.local {
		rows += "_local"
	}
	return names{Spans: spans, Lookup: spans + lookup, Rows: rows, LookupRows: rows + lookup,
		LookupView: rows + lookup + "_mv", Other: spans + "_other", History: spans + "_all",
		HistoryLookup: spans + "_all" + lookup, Dropped: spans + "_dropped",
		TrialA: spans + "_trial_a", TrialB: spans + "_trial_b"}
}

// quoted returns the full name of a table.
func (s Schema) quoted(name string) string {
	if s.Database == "" {
		return quoteName(name)
	}
	return quoteName(s.Database) + "." + quoteName(name)
}

// onCluster returns the clause for statements that run on the whole cluster.
func (s Schema) onCluster() string {
	if s.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + quoteName(s.Cluster)
}

// quoteName returns a text as a quoted identifier.
func quoteName(s string) string { return quote("`", s) }

// quoteText returns a text as a string literal.
func quoteText(s string) string { return quote("'", s) }

func quote(mark, s string) string {
	return mark + strings.NewReplacer(`\`, `\\`, mark, `\`+mark).Replace(s) + mark
}
