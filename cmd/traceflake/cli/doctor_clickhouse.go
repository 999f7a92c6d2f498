package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/internal/await"
)

// spans checks the tables of spans.
func (d *doctor) spans() {
	ctx, cancel := limited(d.cmd.Context())
	defer cancel()
	err := d.clickhouse.with(ctx, func(db *sql.DB) error {
		status, err := await.Call(ctx, grace, func(ctx context.Context) (clickhouse.Status, error) {
			return d.clickhouse.adoption().Status(ctx, db)
		})
		if status.Version != "" {
			d.report("ClickHouse", "version "+status.Version, nil)
		}
		if err != nil {
			return unfit(err)
		}
		d.tables(status)
		return nil
	})
	if err != nil {
		d.report("ClickHouse", "", err)
	}
}

// unfit adds what to do to an error of a table's status. Those of package clickhouse say it, such
// as to upgrade the server.
func unfit(err error) error {
	_, refused := errors.AsType[*chgo.Exception](err)
	if refused || errors.Is(err, context.DeadlineExceeded) {
		return err // diagnose knows more
	}
	return withFix("traceflake clickhouse create, if the table is missing; otherwise follow the "+
		"message", "%w", err)
}

// tables reports the tables, what is wrong with them, and how far an adoption is.
func (d *doctor) tables(s clickhouse.Status) {
	for _, t := range s.Tables {
		text := t.Table
		if t.New {
			text += ", the new table of an adoption"
		}
		for _, fact := range t.Facts {
			if d.allFacts {
				text += fmt.Sprintf("\n         %-15s %s", fact.Name, fact.Value)
			} else if slices.Contains([]string{"engine", "TTL", "ordered IDs"}, fact.Name) {
				text += ", " + fact.Name + " " + fact.Value
			}
		}
		d.report("table", text, nil)
	}
	for _, note := range s.Notes {
		d.note("table", note)
	}
	what := "adoption"
	if s.Phase == clickhouse.NotBegun || s.Phase == clickhouse.Finished {
		what = "table"
	}
	if s.Obstacle != nil { // nobody has asked for one
		d.note("adoption", "not possible: "+s.Obstacle.Error())
	}
	switch {
	case s.Problem != nil:
		d.report(what, "", withFix("follow the message", "%w", s.Problem))
	case s.Obstacle == nil && s.Phase != clickhouse.Finished:
		d.report("adoption", s.Phase.String()+"; "+s.Next, nil)
	}
}
