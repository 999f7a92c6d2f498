package postgres_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/postgres"
)

// Each function once, named as requested, in one statement that a driver can run.
func TestStatements(t *testing.T) {
	functions := []string{
		"trace_id_time(id text)", "trace_id_time(id bytea)", "trace_id_time(id uuid)",
		"trace_id_min(t timestamptz)", "trace_id_min_bytea(t timestamptz)", "trace_id_min_uuid(t timestamptz)",
		"trace_id_max(t timestamptz)", "trace_id_max_bytea(t timestamptz)", "trace_id_max_uuid(t timestamptz)",
		"trace_id_at(t timestamptz)", "trace_id_at_bytea(t timestamptz)", "trace_id_at_uuid(t timestamptz)",
		"uuid_v1_time(id uuid)", "uuid_v1_at(t timestamptz, clock_seq int, node macaddr)",
	}
	for schema, prefix := range map[string]string{
		"":                      "",
		"tracing":               `"tracing".`,
		`Team "A"; DROP`:        `"Team ""A""; DROP".`,
		"ütf":                   `"ütf".`,
		strings.Repeat("x", 63): `"` + strings.Repeat("x", 63) + `".`,
	} {
		statements, err := postgres.Statements(schema)
		if err != nil {
			t.Fatal(err)
		}
		if len(statements) != len(functions) {
			t.Fatalf("%q: %d statements, want %d", schema, len(statements), len(functions))
		}
		for i, statement := range statements {
			if want := "CREATE OR REPLACE FUNCTION " + prefix + functions[i] + " RETURNS "; strings.Count(statement, want) != 1 {
				t.Errorf("%q: there is no %q in:\n%s", schema, want, statement)
			}
			if strings.Count(statement, "CREATE ") != 1 || !strings.HasSuffix(statement, "\n$$") || strings.Count(statement, "$$") != 2 {
				t.Errorf("%q: not one statement:\n%s", schema, statement)
			}
		}
	}
}

var (
	comment   = regexp.MustCompile(`(?m)^--.*\n`)
	qualified = regexp.MustCompile(`pg_catalog\.("C"|\w+|\|\||[-+*/=~])`)
	literal   = regexp.MustCompile(`'[^']*'`)
	// The rest of trace_id_time without literals and qualified names is grammar, which no search
	// path changes.
	grammar = regexp.MustCompile(`^(SELECT|CASE|WHEN|AND|THEN|END|COLLATE|OPERATOR\(\)|::|id|\d+|[(),\s])*$`)
)

// No name in a body depends on the caller's search path: either the function sets its own path, or
// each name has its schema.
func TestSearchPath(t *testing.T) {
	statements, err := postgres.Statements("")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		head, body, _ := strings.Cut(comment.ReplaceAllString(statement, ""), "$$")
		if strings.HasSuffix(head, "SET search_path = pg_catalog AS ") {
			continue
		}
		body = qualified.ReplaceAllString(literal.ReplaceAllString(strings.TrimSuffix(body, "$$"), ""), "")
		if !grammar.MatchString(body) {
			t.Errorf("a name without its schema in:\n%s\nthe rest is\n%s", statement, body)
		}
	}
}

func TestSchemaName(t *testing.T) {
	for _, name := range []string{"pg_catalog", "pg_temp", "a\x00b", "a\nb", "\xff", strings.Repeat("x", 64), strings.Repeat("ü", 32)} {
		statements, err := postgres.Statements(name)
		if !errors.Is(err, postgres.ErrSchemaName) || statements != nil {
			t.Errorf("%q: %d statements, %v", name, len(statements), err)
		}
	}
}
