package clickhouse

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
)

// execute runs statements in order. Its error says which one failed, without its text.
func execute(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return failed(name(statement), err)
		}
	}
	return nil
}

var (
	head = regexp.MustCompile("^((?:[A-Z]+ )+)([\\w`.{}-]+)")
	ifs  = strings.NewReplacer("IF NOT EXISTS ", "", "IF EXISTS ", "", "OR REPLACE ", "")
)

// name is what a statement does to what, as in "create table otel.spans".
func name(statement string) string {
	m := head.FindStringSubmatch(statement)
	if m == nil || m[1] == "SELECT " {
		return ""
	}
	return strings.ToLower(ifs.Replace(m[1])) + strings.ReplaceAll(m[2], "`", "")
}

// failed returns an error of ClickHouse with what failed in front of it, and without the
// SQL that ClickHouse repeats. A guard's explanation stands alone.
func failed(doing string, err error) error {
	text := err.Error()
	if m := guarded.FindStringSubmatch(text); m != nil {
		return &failure{"clickhouse: " + m[1], err}
	}
	for _, end := range []string{", message: ", "DB::Exception: "} {
		if _, after, ok := strings.Cut(text, end); ok {
			text = after
		}
	}
	text = strings.TrimSpace(repeated.ReplaceAllString(text, ""))
	if doing != "" {
		doing += ": "
	}
	return &failure{"clickhouse: " + doing + text, err}
}

var (
	guarded  = regexp.MustCompile(`(?s)traceflake: (.*?)(?:: (?i:while )|: In scope |\. \([A-Z_]{4,}\)|$)`)
	repeated = regexp.MustCompile(`(?s)(: In scope .*|: (?i:while ).*|\.? \([A-Z_]{4,}\).*|\n.*)$`)
)

type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }
