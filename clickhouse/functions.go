package clickhouse

import (
	_ "embed" // the SQL
	"regexp"
	"strings"
)

//go:embed sql/functions.sql
var functions string

// Functions returns the statements that create the functions traceIDTime,
// traceIDSeq, traceIDLow, traceIDMin, traceIDMax, traceIDIsOurs and traceIDAt,
// each with a semicolon after it, as clickhouse-client takes them. They may be
// run again. Functions belong to the server, not to a database.
func Functions() string { return functions }

var comment = regexp.MustCompile(`(?m)^--.*\n`)

// functionStatements are the same one by one, on a cluster if one is named.
func functionStatements(cluster string) []string {
	var all []string
	for statement := range strings.SplitSeq(comment.ReplaceAllString(functions, ""), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, strings.Replace(statement, " AS (", onCluster(cluster)+" AS (", 1))
		}
	}
	return all
}
