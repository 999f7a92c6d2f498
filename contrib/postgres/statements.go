package postgres

import (
	_ "embed"
	"strings"
)

//go:embed functions.sql
var functions string

// Statements returns the statements that create or replace the functions, one per function, without
// semicolons. schema is the name of an existing schema as the catalog has it, without quotes. If it
// is empty, the first schema of the session's search path is used.
func Statements(schema string) []string {
	const create = "CREATE OR REPLACE FUNCTION "
	prefix := ""
	if schema != "" {
		prefix = `"` + strings.ReplaceAll(schema, `"`, `""`) + `".`
	}
	text := strings.ReplaceAll(functions, create, create+prefix)
	// Each statement begins with its comment, which precedes its CREATE.
	return strings.Split(strings.TrimSuffix(text, ";\n"), ";\n\n")
}
