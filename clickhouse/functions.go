package clickhouse

import (
	_ "embed" // the SQL
	"regexp"
	"strings"
)

//go:embed sql/functions.sql
var functions string

var comment = regexp.MustCompile(`(?m)^--.*\n`)

// functions is the step that creates the functions on trace IDs, which belong to the server, not to a database.
func (s Schema) functions() Step {
	step := Step{Does: "the functions on trace IDs exist"}
	for statement := range strings.SplitSeq(comment.ReplaceAllString(functions, ""), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			step.SQL = append(step.SQL, strings.Replace(statement, " AS (", s.onCluster()+" AS (", 1))
		}
	}
	return step
}
