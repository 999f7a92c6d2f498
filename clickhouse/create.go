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

// Create runs [Schema.Plan] on the ClickHouse of db, for example from clickhouse-go's OpenDB.
// To an existing table it adds the exporter's columns, our indexes and the projection that it
// lacks, and if TTL is set and the table has another TTL, it is changed. Create can be run again at
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

// Plan returns the plan that [Schema.Create] runs on the server of db. If db is nil, the plan is
// that for a server without the tables; see [Schema.Statements].
func (s Schema) Plan(ctx context.Context, db *sql.DB) (p Plan, err error) {
	if db == nil {
		if err := s.validate(); err != nil {
			return p, err
		}
		return Plan{Steps: s.steps(server{})}, nil
	}
	o, err := s.fits(ctx, db)
	if err != nil {
		return p, err
	}
	s.Version = o.version
	ttl, err := s.changeTTL(o)
	steps := append(s.steps(o), s.repairs(o.table(s.named().rows))...)
	return Plan{Steps: append(steps, ttl...)}, err
}

// onlyDrops matches a TTL that only drops spans after a time.
var onlyDrops = regexp.MustCompile(`^(?:toDate(?:Time)?\()?(?:Timestamp|Start|End)\)?` +
	` \+ toInterval(Second|Minute|Hour|Day|Week|Month|Quarter|Year)\((\d+)\)$`)

var units = map[string]time.Duration{"Second": time.Second, "Minute": time.Minute,
	"Hour": time.Hour, "Day": 24 * time.Hour, "Week": 7 * 24 * time.Hour}

// changeTTL returns the steps that change the TTL of existing tables. Other tables are created with
// their TTL.
func (s Schema) changeTTL(o server) (steps []Step, err error) {
	n := s.named()
	for _, of := range []struct{ table, column string }{{n.rows, "Timestamp"}, {n.times, "End"}} {
		t := o.table(of.table)
		if s.TTL == 0 || !t.exists() {
			continue
		}
		now := t.ttl()
		if now != "" {
			m := onlyDrops.FindStringSubmatch(now)
			if m == nil {
				return nil, errorf("the TTL of %s is %q, which does more than "+
					"drop old spans: change it by hand, and leave the TTL out here", t.Name, now)
			}
			if n, _ := strconv.Atoi(m[2]); time.Duration(n)*units[m[1]] == s.TTL {
				continue
			}
		}
		steps = append(steps, Step{
			Does: fmt.Sprintf("spans of %s are kept for %v; the TTL was %q", t.Name, s.TTL, now),
			SQL:  []string{s.alter(t.Name) + "MODIFY TTL " + s.ttlOf(of.column)},
		})
	}
	return steps, nil
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
