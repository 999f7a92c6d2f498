package cli

import (
	"context"
	"database/sql"
	"errors"
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
		version, err := await.Call(ctx, grace,
			func(ctx context.Context) (version string, err error) {
				err = db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
				return version, err
			})
		if err != nil {
			return err
		}
		d.report("ClickHouse", "version "+version, nil)
		status, err := await.Call(ctx, grace, func(ctx context.Context) (clickhouse.Status, error) {
			return d.clickhouse.adoption().Status(ctx, db)
		})
		if err != nil {
			return unfit(err)
		}
		for _, t := range status.Tables {
			d.table(t)
		}
		d.adoption(status)
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
	return wrong("traceflake clickhouse create, if the table is missing; otherwise follow the "+
		"message", "%w", err)
}

func (d *doctor) table(t clickhouse.TableStatus) {
	text := t.Table
	for _, fact := range t.Facts {
		if slices.Contains([]string{"engine", "TTL", "ordered IDs"}, fact.Name) {
			text += ", " + fact.Name + " " + fact.Value
		}
	}
	d.report("table", text, nil)
}

// adoption reports what is wrong with the tables, and how far an adoption is.
func (d *doctor) adoption(s clickhouse.Status) {
	what, adopting := "table", s.Phase == clickhouse.Prepared || s.Phase == clickhouse.Swapped
	if adopting {
		what = "adoption"
	}
	switch {
	case s.Problem != nil:
		d.report(what, "", wrong("follow the message; `traceflake clickhouse status` shows "+
			"the tables", "%w", s.Problem))
	case s.Obstacle != nil: // nor has anybody asked for one
		d.report("adoption", "not possible: "+s.Obstacle.Error(), nil)
	case adopting:
		d.report("adoption", s.Phase.String()+"; `traceflake clickhouse status` shows what is next",
			nil)
	}
}
