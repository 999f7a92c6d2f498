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
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

var granted = regexp.MustCompile(`(?m)^GRANT (.*) ON (\S+) TO operator;(?: -- (.*))?$`)

// right is one that docs/clickhouse.md lists, and the command that needs it; "" is both.
type right struct{ what, on, by string }

func rights() (all []right) {
	page, err := os.ReadFile("../../docs/clickhouse.md")
	if err != nil {
		panic(err)
	}
	for _, m := range granted.FindAllStringSubmatch(string(page), -1) {
		for what := range strings.SplitSeq(m[1], ", ") {
			all = append(all, right{what, m[2], m[3]})
		}
	}
	return all
}

// users is the engine's configuration of users. Its only user may do everything, and may take a
// role instead: withoutN has all rights of the page but number N.
func users() []byte {
	roles, taken := "<everything><grants><query>GRANT ALL ON *.* WITH GRANT OPTION</query></grants></everything>", "<query>GRANT everything</query>"
	for i := range len(rights()) + 1 {
		roles += fmt.Sprintf("<without%d><grants>", i)
		for k, r := range rights() {
			if k != i {
				roles += "<query>GRANT " + r.what + " ON " + strings.Replace(r.on, "otel.", "traceflake_*.", 1) + "</query>"
			}
		}
		roles += fmt.Sprintf("</grants></without%d>", i)
		taken += fmt.Sprintf("<query>GRANT without%d</query>", i)
	}
	return fmt.Appendf(nil, "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><roles>%s</roles><users><default>"+
		"<no_password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota><grants>%s</grants></default></users></clickhouse>", roles, taken)
}

// TestRights: a user with exactly the rights of the page can create and adopt tables. Where one is
// missing, the error names it and the statement, and with it the same goes to its end.
func TestRights(t *testing.T) {
	if os.Getenv("TRACEFLAKE_CLICKHOUSE_DSN") != "" {
		t.Skip("for the embedded engine only")
	}
	all := rights()
	for i, missing := range append(all, right{}) {
		e := newEngine(t)
		e.run(collectorTable("spans"), nil)
		e.run(collectorTable("overlay")[:1], nil)
		user := func(role int) *sql.DB {
			return e.rewriting(fmt.Sprintf("role=without%d", role), func(query string) string {
				return strings.Replace(query, "SELECT sleep(1)", "SELECT 1", 1)
			})
		}
		for command, run := range map[string]func(context.Context, *sql.DB) error{"create": e.createsAll, "adopt": e.adoptsAll()} {
			want := "necessary to have the grant "
			if strings.HasPrefix(missing.what, "SHOW") {
				want = "may not see"
			}
			err := run(t.Context(), user(i))
			switch refused := missing.what != "" && strings.Contains(command, missing.by); {
			case refused && (err == nil || !strings.HasPrefix(err.Error(), "clickhouse: ") || strings.Contains(err.Error(), "HTTP") || !strings.Contains(err.Error(), want)):
				t.Errorf("%s without %s: %v", command, missing.what, err)
			case !refused && err != nil:
				t.Errorf("%s without %q: %v", command, missing.what, err)
			case refused:
				if err := run(t.Context(), user(len(all))); err != nil {
					t.Errorf("%s after %s was granted: %v", command, missing.what, err)
				}
			}
		}
	}
}

// createsAll creates what create can.
func (e *engine) createsAll(ctx context.Context, db *sql.DB) error {
	overlay := clickhouse.Schema{Table: "overlay", Layout: clickhouse.Overlay, TTL: time.Hour}
	build, err := overlay.MaterializeIndexes()
	return errors.Join(err, clickhouse.Schema{Table: "fresh", KeepLookup: true}.Create(ctx, db), overlay.Create(ctx, db), build.Run(ctx, db, nil))
}

// adoptsAll returns a function that does all that adopt can, and goes on where it failed.
func (e *engine) adoptsAll() func(context.Context, *sql.DB) error {
	left := []string{"prepare", "undo", "prepare", "add column", "prepare", "swap", "drop-history"}
	return func(ctx context.Context, db *sql.DB) error {
		for ; len(left) > 0; left = left[1:] {
			if left[0] == "add column" {
				e.exec("ALTER TABLE spans ADD COLUMN Later String")
				continue
			}
			plan, err := adopt(ctx, clickhouse.Adoption{Table: "spans"}, left[0], db)
			if i := slices.IndexFunc(plan.Notes, func(note string) bool { return strings.Contains(note, "may not see") }); err == nil && i >= 0 {
				err = errors.New("clickhouse: " + plan.Notes[i])
			}
			if err != nil {
				return err
			}
		}
		_, err := clickhouse.Adoption{Table: "spans"}.Status(ctx, db)
		return err
	}
}
