package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Create runs [Schema.Statements] on the ClickHouse of db, for example from clickhouse-go's OpenDB.
// If TTL is set and an existing table has another TTL, it is changed. Create can be run again at
// any time.
//
// Errors: the server is too old, a table has another schema, a TTL does more than drop old spans,
// and ClickHouse's own errors, which contain a missing privilege.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	p, err := s.Plan(ctx, db)
	if err != nil {
		return err
	}
	return p.Run(ctx, db, nil)
}

// Plan returns the plan that [Schema.Create] runs on the server of db.
func (s Schema) Plan(ctx context.Context, db *sql.DB) (Plan, error) {
	o, err := s.fits(ctx, db)
	if err != nil {
		return Plan{}, err
	}
	s.replicated = o.databaseEngine == "Replicated"
	ttl, err := s.changeTTL(o)
	return Plan{Steps: append(s.steps(o), ttl...),
		Notes: []string{"lookups by trace ID: " + LookupAdvice}}, err
}

// onlyDrops matches a TTL that only drops spans after a time.
var onlyDrops = regexp.MustCompile(`^(?:toDateTime\()?(?:Timestamp|Start|End)\)?` +
	` \+ toInterval(Second|Minute|Hour|Day|Week)\((\d+)\)$`)

// changeTTL returns the steps that change the TTL of existing tables.
func (s Schema) changeTTL(o server) (steps []Step, err error) {
	n := s.named()
	for _, of := range []struct{ table, column string }{{n.rows, "Timestamp"}, {n.times, "End"}} {
		t := o.table(of.table)
		if s.TTL == 0 || !t.exists() {
			continue // or it is created with its TTL
		}
		alter := "ALTER TABLE " + s.quoted(of.table) + s.onCluster() + " "
		step := Step{Does: fmt.Sprintf("spans of %s are kept for %v", of.table, s.TTL),
			SQL:  []string{alter + "MODIFY TTL " + s.ttlOf(of.column)},
			Undo: []string{alter + "REMOVE TTL"}}
		if now := clause(t.Full, "TTL"); now != "" {
			m := onlyDrops.FindStringSubmatch(now)
			if m == nil {
				return nil, fmt.Errorf("clickhouse: the TTL of %s is %q, which does more than "+
					"drop old spans: change it by hand, and leave the TTL out here",
					of.table, now)
			}
			n, _ := strconv.Atoi(m[2])
			unit := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute,
				"Hour": time.Hour, "Day": 24 * time.Hour, "Week": 7 * 24 * time.Hour}[m[1]]
			if time.Duration(n)*unit == s.TTL {
				continue
			}
			step.Undo = []string{alter + "MODIFY TTL " + now}
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// MaterializeIndexes returns the plan that builds the index on ranges of trace IDs for the spans of
// an Overlay, and for the logs if LogsTable is set, that were stored before [Schema.Create] added
// it. The plan blocks until the mutation is done; if it is interrupted, the mutation continues. It
// costs about a second of CPU for six million rows, and 0.01 bytes a row.
func (s Schema) MaterializeIndexes() (p Plan, err error) {
	for _, name := range s.indexed() {
		p.Steps = append(p.Steps, Step{
			Does: "old parts of " + name + " have the index on ranges of trace IDs",
			SQL: []string{"ALTER TABLE " + s.quoted(name) + s.onCluster() + " MATERIALIZE INDEX " +
				rangeIndex + " SETTINGS mutations_sync = 0"},
			wait: "SELECT toString(sum(parts_to_do)) AS left, anyIf(latest_fail_reason, " +
				"latest_fail_reason != '') AS reason FROM system.mutations\nWHERE " +
				s.at("table", name) + " AND NOT is_done AND command LIKE '%MATERIALIZE INDEX " +
				rangeIndex + "%'",
		})
	}
	return p, s.validate()
}

// functions returns the step that creates the functions on trace IDs, which belong to the server,
// not to a database.
func (s Schema) functions() Step {
	step := Step{Does: "the functions on trace IDs exist"}
	for statement := range strings.SplitSeq(template("functions"), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			step.SQL = append(step.SQL,
				strings.Replace(statement, " AS (", s.onCluster()+" AS (", 1))
		}
	}
	return step
}
