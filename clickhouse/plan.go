package clickhouse

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// Plan is what is to be changed on a server. Making one changes nothing: everything
// that can be checked beforehand has been checked.
type Plan struct {
	Steps []Step
	Notes []string // for the operator: what is not carried over, what remains to be done
}

// Step is one change. Repeating it does no harm.
type Step struct {
	Does string   // what is true afterwards, as in "the table otel_traces exists"
	SQL  []string // to be run in order
	Undo []string // undoes it; empty if nothing has to be undone

	until string // a query that returns 1 if the step has been done
	wait  string // a query for what ClickHouse has left to do in the background, and why that fails
}

// Script returns the plan as a file for clickhouse-client, with its notes as comments.
func (p Plan) Script() string {
	var all strings.Builder
	for _, step := range p.Steps {
		fmt.Fprintf(&all, "-- %s\n%s\n", step.Does, Script(step.SQL))
		if len(step.Undo) > 0 {
			all.WriteString("-- undo: " + strings.ReplaceAll(strings.Join(step.Undo, "; "), "\n", " ") + "\n\n")
		}
	}
	for _, note := range p.Notes {
		all.WriteString("-- " + note + "\n")
	}
	return all.String()
}

// SQL returns the statements of all steps.
func (p Plan) SQL() (all []string) {
	for _, step := range p.Steps {
		all = append(all, step.SQL...)
	}
	return all
}

// Run runs the plan. done, which may be nil, gets each step after it was done. After
// an error or an interruption make a new plan: it has the steps that are left.
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

// run repeats a step that undoes itself if somebody else ran it at the same time: the
// last to run it sees that it has to be run once more.
func (step Step) run(ctx context.Context, db *sql.DB) error {
	for range 20 {
		if step.until != "" {
			if rows, err := query(ctx, db, step.until); err != nil || rows[0][0] == "1" {
				return err
			}
		}
		if err := execute(ctx, db, step.SQL...); err != nil {
			return err
		}
		if step.until == "" {
			return step.ended(ctx, db)
		}
		time.Sleep(rand.N(50 * time.Millisecond))
	}
	return fmt.Errorf("clickhouse: %s: somebody else undoes this at the same time; nothing is lost: agree with them, then look at the status", step.Does)
}

// ended waits for what the step has started.
func (step Step) ended(ctx context.Context, db *sql.DB) error {
	for step.wait != "" {
		switch rows, err := query(ctx, db, step.wait); {
		case err != nil || rows[0][0] == "0":
			return err
		case rows[0][1] != "":
			return fmt.Errorf("clickhouse: %s: this was started, but fails: %s", step.Does, rows[0][1])
		}
		time.Sleep(time.Second) // the next query fails if ctx has ended
	}
	return nil
}

// query returns the rows of a query whose columns are strings.
func query(ctx context.Context, db *sql.DB, query string) (all [][]string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, failed("reading the server's tables", err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		err = rows.Scan(into...)
		all = append(all, row)
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		return nil, failed("reading the server's tables", err)
	}
	return all, nil
}

// execute runs statements in order. Its error begins with that of the statement that failed.
func execute(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			line, _, _ := strings.Cut(statement, "\n")
			return failed(fmt.Sprintf("%.80s", strings.TrimSuffix(line, " (")), err)
		}
	}
	return nil
}

// said is what ClickHouse says in an error, without its codes and the SQL that it repeats.
var said = regexp.MustCompile(`(?s)^.*?(?:, message: |DB::Exception: )+(.*?)(?:: In scope .*|: (?i:while ).*|\.? \([A-Z_]{4,}\).*|\n.*)?$`)

// failed returns an error of ClickHouse with what failed in front of it. It wraps err without repeating its text.
func failed(doing string, err error) error {
	return fmt.Errorf("clickhouse: %s: %s%.0w", doing, strings.TrimSpace(said.ReplaceAllString(err.Error(), "$1")), err)
}
