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
// each followed by a semicolon, for clickhouse-client. They can be run again.
// Functions belong to the server, not to a database.
func Functions() string { return functions }

var comment = regexp.MustCompile(`(?m)^--.*\n`)

// functions is the step that creates them.
func (s Schema) functions() Step {
	step := Step{Does: "the functions on trace IDs exist"}
	for statement := range strings.SplitSeq(comment.ReplaceAllString(functions, ""), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			step.SQL = append(step.SQL, strings.Replace(statement, " AS (", s.onCluster()+" AS (", 1))
		}
	}
	return step
}
