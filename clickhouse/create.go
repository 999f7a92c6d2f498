package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Create runs [Schema.Statements] on the ClickHouse of db, for example from
// clickhouse-go's OpenDB. If TTL is set and an existing table has another one, it is
// changed, also that of the lookup table. Create can be run again at any time.
//
// Errors: a server that is too old, a table of another shape, a TTL that does more
// than drop old spans, and ClickHouse's own, which name a missing privilege.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	p, err := s.Plan(ctx, db)
	if err != nil {
		return err
	}
	return p.Run(ctx, db, nil)
}

// Plan returns what [Schema.Create] does to the server of db.
func (s Schema) Plan(ctx context.Context, db *sql.DB) (Plan, error) {
	if err := s.validate(); err != nil {
		return Plan{}, err
	}
	if err := ddl.Exec(ctx, db, s.guards()...); err != nil {
		return Plan{}, err
	}
	steps := s.steps()
	if s.TTL > 0 {
		ttl, err := s.changeTTL(ctx, db)
		if err != nil {
			return Plan{}, err
		}
		steps = append(steps, ttl...)
	}
	return Plan{Steps: steps}, nil
}

// onlyDrops is a TTL that drops spans after a time and does nothing else.
var onlyDrops = regexp.MustCompile(`^(?:toDateTime\()?(?:Timestamp|Start)\)? \+ toInterval(Second|Minute|Hour|Day|Week)\((\d+)\)$`)

// changeTTL returns the steps that give existing tables another TTL.
func (s Schema) changeTTL(ctx context.Context, db *sql.DB) (steps []Step, err error) {
	t := s.ddl()
	rowsOf := "" // of an Overlay, the exporter's table
	if s.Layout != Overlay {
		rowsOf = t.Rows()
	}
	for suffix, column := range map[string]string{rowsOf: "Timestamp", ddl.Lookup + rowsOf: "Start"} {
		rows, err := query(ctx, db, fmt.Sprintf("SELECT engine_full FROM system.tables WHERE database = %s AND name = %s AND endsWith(engine, 'MergeTree')", t.InDatabase(), ddl.QuoteText(t.Named(suffix))))
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue // it is created with its TTL, or is a view
		}
		alter := "ALTER TABLE " + t.Quoted(suffix) + t.OnCluster() + " "
		step := Step{Does: fmt.Sprintf("spans of %s are kept for %v", t.Named(suffix), s.TTL),
			SQL: []string{alter + "MODIFY TTL " + ddl.TTL(column, s.TTL)}, Undo: []string{alter + "REMOVE TTL"}}
		if now := clause(rows[0][0], "TTL"); now != "" {
			m := onlyDrops.FindStringSubmatch(now)
			if m == nil {
				return nil, fmt.Errorf("clickhouse: the TTL of %s is %q, which does more than drop old spans: change it by hand, and leave the TTL out here", t.Named(suffix), now)
			}
			n, _ := strconv.Atoi(m[2])
			unit := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Day": 24 * time.Hour, "Week": 7 * 24 * time.Hour}[m[1]]
			if time.Duration(n)*unit == s.TTL {
				continue
			}
			step.Undo = []string{alter + "MODIFY TTL " + now}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// Materialize returns the plan that starts to build the index on ranges of trace IDs for
// what was stored before: see [Schema.MaterializeIndexes].
func (s Schema) Materialize() (p Plan, err error) {
	for _, sql := range s.indexes(ddl.Table.MaterializeRangeIndex) {
		p.Steps = append(p.Steps, Step{Does: "old parts get the index on ranges of trace IDs", SQL: []string{sql}})
	}
	return p, s.validate()
}

// MaterializeIndexes builds the index on ranges of trace IDs for the spans of an
// Overlay, and for the logs if LogsTable is set, that were stored before [Schema.Create]
// added it. progress, which may be nil, gets how many parts are left, about once a
// second. ClickHouse goes on if ctx ends. It costs about a second of CPU for six
// million rows, and 0.01 bytes a row.
func (s Schema) MaterializeIndexes(ctx context.Context, db *sql.DB, progress func(partsLeft uint64)) error {
	p, err := s.Materialize()
	if err != nil {
		return err
	}
	if err := p.Run(ctx, db, nil); err != nil {
		return err
	}
	tables := s.indexes(func(t ddl.Table) string { return ddl.QuoteText(t.Named("")) })
	if len(tables) == 0 {
		return nil
	}
	query := fmt.Sprintf("SELECT sum(parts_to_do), anyIf(latest_fail_reason, latest_fail_reason != '') FROM system.mutations\n"+
		"WHERE database = %s AND table IN (%s) AND NOT is_done AND command LIKE '%%MATERIALIZE INDEX %s%%'",
		s.ddl().InDatabase(), strings.Join(tables, ", "), ddl.RangeIndex)
	for {
		var left uint64
		var failure string
		if err := db.QueryRowContext(ctx, query).Scan(&left, &failure); err != nil {
			return ddl.Failed("query the progress of the index", err)
		}
		switch {
		case failure != "":
			return fmt.Errorf("clickhouse: the index was added but cannot be built for old parts: %s", failure)
		case left == 0:
			return nil
		}
		if progress != nil {
			progress(left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
