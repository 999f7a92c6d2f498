package clickhouse_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

var granted = regexp.MustCompile(`(?m)^GRANT (.*) ON (\S+) TO operator;(?: -- (.*))?$`)

// settled lets an adoption skip the wait for inserts, which no test runs.
var settled = strings.NewReplacer("SELECT sleep(1)", "SELECT 1")

func (e *engine) settled() *sql.DB { return e.rewriting("", settled.Replace) }

// commands are the commands that need the rights.
var commands = []string{"create", "adopt"}

// of returns a statement for each right that a command needs, which the page lists for it or for
// both commands.
func of(command string) (all []string) {
	for _, m := range granted.FindAllStringSubmatch(read("../../docs/clickhouse.md"), -1) {
		for what := range strings.SplitSeq(m[1], ", ") {
			if strings.Contains(command, m[3]) {
				all = append(all, "GRANT "+what+" ON "+
					strings.Replace(m[2], "otel.", "traceflake_*.", 1))
			}
		}
	}
	return all
}

// users returns testdata/users.xml with the roles of TestRights: create3 has all rights that the
// page lists for create, except number 3.
func users() string {
	roles, granted := "", ""
	for _, command := range commands {
		grants := of(command)
		for i := range len(grants) + 1 {
			role := fmt.Sprint(command, i)
			has := slices.Concat(grants[:i], grants[min(i+1, len(grants)):])
			roles += "<" + role + "><grants><query>" + strings.Join(has, "</query><query>") +
				"</query></grants></" + role + ">"
			granted += "<query>GRANT " + role + "</query>"
		}
	}
	return strings.NewReplacer("{roles}", roles, "{granted}", granted).Replace(
		read("testdata/users.xml"))
}

// TestRights: a user with exactly the rights that the page lists can create tables, or adopt one.
// If a right is missing, the error contains it, and once it is granted the same command succeeds.
func TestRights(t *testing.T) {
	if os.Getenv("TRACEFLAKETEST_CLICKHOUSE_DSN") != "" {
		t.Skip("for the embedded engine only")
	}
	for _, command := range commands {
		all := of(command)
		for i, missing := range append(all, "") {
			e := newEngine(t)
			e.run(collectorTable("spans")[:1], nil)
			e.run([]string{older.Replace(createTable(clickhouse.Schema{Table: "half"})),
				"ALTER TABLE half DROP INDEX idx_duration",
				"ALTER TABLE half DROP COLUMN StatusMessage"}, nil)
			e.insert("spans", few()[:1])
			run := map[string]func(context.Context, *sql.DB) error{"create": e.createsAll,
				"adopt": e.adoptsAll()}[command]
			as := func(role int) error {
				return run(t.Context(),
					e.rewriting(fmt.Sprint("role=", command, role), settled.Replace))
			}
			want := "necessary to have the grant "
			if strings.HasPrefix(missing, "GRANT SHOW") {
				want = "may not see"
			}
			err := as(i)
			if missing != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "clickhouse: ") ||
					strings.Contains(err.Error(), "HTTP") || !strings.Contains(err.Error(), want) {
					t.Errorf("%s without %s: %v", command, missing, err)
				}
				err = as(len(all))
			}
			if err != nil {
				t.Errorf("%s after %q was granted: %v", command, missing, err)
			}
		}
	}
}

// createsAll creates everything that create can.
func (e *engine) createsAll(ctx context.Context, db *sql.DB) error {
	return clickhouse.Schema{Table: "half", Projection: clickhouse.Charts}.Create(ctx, db)
}

// adoptsAll returns a function that runs everything that adopt can, and continues where it failed.
func (e *engine) adoptsAll() func(context.Context, *sql.DB) error {
	left := []string{"prepare", "end", "prepare", "swap", "undo", "end"}
	return func(ctx context.Context, db *sql.DB) error {
		for ; len(left) > 0; left = left[1:] {
			var notes string
			var err error
			if left[0] == "prepare" {
				var plan clickhouse.Plan
				plan, err = adopt(ctx, ofSpans, left[0], db)
				notes = strings.Join(plan.Notes, "\n")
			} else {
				err = e.adopts(left[0], db)
			}
			if err == nil && strings.Contains(notes, "may not see") {
				err = errors.New("clickhouse: " + notes)
			}
			if err != nil {
				return err
			}
		}
		_, err := ofSpans.Status(ctx, db)
		return err
	}
}
