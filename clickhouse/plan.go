package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// Plan holds the changes to be run on a server. Everything that can be checked beforehand has been
// checked; only Run changes the server.
type Plan struct {
	Steps []Step
	Notes []string // for the operator: what is not carried over, what remains to be done
}

// Step is one change. Steps are idempotent.
type Step struct {
	Does string   // what holds once the step has run, as in "the table otel_traces exists"
	SQL  []string // to be run in order
	Undo []string // undoes it; empty if nothing has to be undone

	until   string   // a query for whether the step has been done
	wait    string   // a query for what is left to do in the background, and why that fails
	restore []string // undoes what was done of the step if it fails
	advice  string   // what to do if it fails
}

// Script returns the plan as a file for clickhouse-client, with its notes as comments.
func (p Plan) Script() string {
	var all strings.Builder
	for _, step := range p.Steps {
		fmt.Fprintf(&all, "-- %s\n%s\n", step.Does, script(step.SQL))
		if len(step.Undo) > 0 {
			all.WriteString("-- undo: " + strings.ReplaceAll(strings.Join(step.Undo, "; "), "\n",
				" ") + "\n\n")
		}
	}
	for _, note := range p.Notes {
		all.WriteString("-- " + strings.ReplaceAll(note, "\n", "\n-- ") + "\n")
	}
	return all.String()
}

// errorf returns an error of this package.
func errorf(format string, args ...any) error { return fmt.Errorf("clickhouse: "+format, args...) }

// script returns statements as text for clickhouse-client.
func script(statements []string) string { return strings.Join(statements, ";\n\n") + ";\n" }

// SQL returns the statements of all steps.
func (p Plan) SQL() (all []string) {
	for _, step := range p.Steps {
		all = append(all, step.SQL...)
	}
	return all
}

// Run runs the plan. done, which may be nil, gets each step after it was done. After an error or an
// interruption get a new plan, which has the steps that are left.
func (p Plan) Run(ctx context.Context, db *sql.DB, done func(Step)) error {
	for _, step := range p.Steps {
		if err := step.run(ctx, db); err != nil {
			return err
		}
		if done != nil {
			done(step)
		}
	}
	return nil
}

// run runs a step, and restores the previous state if the step fails.
func (step Step) run(ctx context.Context, db *sql.DB) error {
	err := step.try(ctx, db)
	if err == nil {
		return step.ended(ctx, db)
	}
	if undo := execute(context.WithoutCancel(ctx), db, step.restore...); undo != nil {
		err = fmt.Errorf("%w; and what was done of it remains: %w", err, undo)
	}
	if step.advice != "" {
		err = fmt.Errorf("%w\n%s", err, step.advice)
	}
	return err
}

// try runs a step, and repeats it if somebody else ran it concurrently and so undid it: the last to
// run it finds that it has to run once more.
func (step Step) try(ctx context.Context, db *sql.DB) error {
	if step.until == "" {
		return execute(ctx, db, step.SQL...)
	}
	for range 20 {
		is, err := read[struct{ Done uint8 }](ctx, db, step.until)
		if err != nil || is[0].Done == 1 {
			return err
		}
		if err := execute(ctx, db, step.SQL...); err != nil {
			return err
		}
		time.Sleep(rand.N(50 * time.Millisecond))
	}
	return errorf("%s: another operator is undoing this step; nothing was lost: "+
		"coordinate, then run status", step.Does)
}

// ended waits for the mutations that the step has started.
func (step Step) ended(ctx context.Context, db *sql.DB) error {
	type work struct {
		Left   uint64 `json:",string"`
		Reason string
	}
	for step.wait != "" {
		switch all, err := read[work](ctx, db, step.wait); {
		case err != nil || all[0].Left == 0:
			return err
		case all[0].Reason != "":
			return errorf("%s: this was started, but fails: %s", step.Does,
				all[0].Reason)
		}
		time.Sleep(time.Second) // the next query fails if ctx has ended
	}
	return nil
}

// execute runs statements in order. Its error begins with that of the statement that failed.
func execute(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
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
