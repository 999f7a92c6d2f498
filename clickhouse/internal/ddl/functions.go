package ddl

import (
	_ "embed" // the SQL
	"regexp"
	"strings"
)

//go:embed sql/functions.sql
var functions string

// Functions is the script of the functions on trace IDs.
func Functions() string { return functions }

var comment = regexp.MustCompile(`(?m)^--.*\n`)

// Functions are the statements of the script, one by one.
func (t Table) Functions() []string {
	var all []string
	for statement := range strings.SplitSeq(comment.ReplaceAllString(functions, ""), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			all = append(all, strings.Replace(statement, " AS (", t.OnCluster()+" AS (", 1))
		}
	}
	return all
}
