package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// Plan holds the changes to be run on a server. Only Run changes the server.
type Plan struct {
	Steps []Step
	Notes []string // for the operator: what is not carried over, and what can be done next
}

// Step is a comment and the statements that it describes. Steps can be repeated.
type Step struct {
	Does string
	SQL  []string // to be run in order

	restore []string // undoes what was done of the step if it fails
	advice  string   // what to do if it fails
}

// Script returns the plan as a file for clickhouse-client, with its notes as comments.
func (p Plan) Script() string {
	var all strings.Builder
	for _, step := range p.Steps {
		all.WriteString(step.Script())
	}
	for _, note := range p.Notes {
		all.WriteString(commented(note))
	}
	return all.String()
}

// Script returns the step as a part of a file for clickhouse-client.
func (step Step) Script() string { return commented(step.Does) + script(step.SQL) + "\n" }

func commented(text string) string {
	return "-- " + strings.ReplaceAll(text, "\n", "\n-- ") + "\n"
}

// errorf returns an error of this package.
func errorf(format string, args ...any) error { return fmt.Errorf("clickhouse: "+format, args...) }

// script returns statements as text for clickhouse-client.
func script(statements []string) string { return strings.Join(statements, ";\n") + ";\n" }

// SQL returns the statements of all steps.
func (p Plan) SQL() (all []string) {
	for _, step := range p.Steps {
		all = append(all, step.SQL...)
	}
	return all
}

// Run runs the plan. before, which may be nil, gets each step before it is run. After an error or
// an interruption get a new plan, which has the steps that are left.
func (p Plan) Run(ctx context.Context, db *sql.DB, before func(Step)) error {
	// On one connection database/sql repeats no statement whose answer is lost: it may be running.
	conn, err := db.Conn(ctx)
	if err != nil {
		return serverError{"connect", err}
	}
	defer func() { _ = conn.Close() }()
	for _, step := range p.Steps {
		if before != nil {
			before(step)
		}
		err := execute(ctx, conn, step.SQL)
		if err == nil {
			continue
		}
		if undo := execute(context.WithoutCancel(ctx), conn, step.restore); undo != nil {
			err = fmt.Errorf("%w; and what was done of it remains: %w", err, undo)
		}
		if step.advice != "" {
			err = fmt.Errorf("%w\n%s", err, step.advice)
		}
		return err
	}
	return nil
}

// execute runs statements in order. Its error begins with that of the statement that failed.
func execute(ctx context.Context, conn *sql.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			line, _, _ := strings.Cut(statement, "\n")
			if strings.HasPrefix(line, "SELECT throwIf(") {
				line = "the check before the next statement"
			}
			return serverError{fmt.Sprintf("%.80s", strings.TrimSuffix(line, " (")), err}
		}
	}
	return nil
}

// serverError is an error of ClickHouse during an operation.
type serverError struct {
	doing string
	err   error
}

func (e serverError) Unwrap() error { return e.err }

// Error returns the operation and ClickHouse's message, without its codes and the echoed SQL.
func (e serverError) Error() string {
	return "clickhouse: " + e.doing + ": " +
		strings.TrimSpace(said.ReplaceAllString(e.err.Error(), "$1"))
}

// said matches the message of a ClickHouse error.
var said = regexp.MustCompile(`(?s)^.*?(?:, message: |DB::Exception: )+(.*?)` +
	`(?:: In scope .*|: (?i:while ).*|\.? \([A-Z_]{4,}\).*|\n.*)?$`)
