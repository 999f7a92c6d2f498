package postgres

import (
	"embed"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed sql/*.sql
var files embed.FS

// No function needs another; the order is only for readers.
var names = [...]string{"trace_id_time", "trace_id_range", "trace_id_at", "uuid_v1"}

const create = "CREATE OR REPLACE FUNCTION "

// ErrSchemaName is returned by [Statements] for a name that PostgreSQL would refuse, truncate or
// misread.
var ErrSchemaName = errors.New("postgres: invalid schema name")

// Statements returns the statements that create or replace the functions, one for each, without a
// semicolon. schema is the name of an existing schema as the catalog has it, without quotes: 1 to
// 63 bytes of UTF-8, no control characters, and not beginning with pg_; for other names the error
// wraps [ErrSchemaName]. If it is empty, the first schema of the session's search path is used.
func Statements(schema string) ([]string, error) {
	prefix := ""
	if schema != "" {
		if err := checkName(schema); err != nil {
			return nil, err
		}
		prefix = `"` + strings.ReplaceAll(schema, `"`, `""`) + `".`
	}
	var statements []string
	for _, name := range names {
		text, err := files.ReadFile("sql/" + name + ".sql")
		if err != nil {
			return nil, err
		}
		// Each statement begins with its comment, which precedes its CREATE.
		for statement := range strings.SplitSeq(strings.TrimSuffix(string(text), ";\n"), ";\n\n") {
			statements = append(statements, strings.Replace(statement, create, create+prefix, 1))
		}
	}
	return statements, nil
}

func checkName(schema string) error {
	const maxName = 63 // PostgreSQL truncates longer ones
	var reason string
	switch {
	case !utf8.ValidString(schema):
		reason = "it is not UTF-8"
	case len(schema) > maxName:
		reason = fmt.Sprintf("it has %d bytes, at most %d are allowed", len(schema), maxName)
	case strings.ContainsFunc(schema, unicode.IsControl):
		reason = "it has a control character"
	case strings.HasPrefix(schema, "pg_"):
		reason = "names that begin with pg_ are reserved by PostgreSQL"
	default:
		return nil
	}
	return fmt.Errorf("%w %q: %s", ErrSchemaName, schema, reason)
}
