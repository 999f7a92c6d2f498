package clickhouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/clickhouse"
)

// role is a role in users.xml, with its grants.
type role struct {
	name   string
	grants []string
}

// users is an engine's users.xml. Its only user has all rights, and may assume the roles instead;
// policies are its row policies, as XML.
func users(roles []role, policies string) []byte {
	taken, all := "", ""
	roles = append(roles, role{"everything", []string{"GRANT ALL ON *.* WITH GRANT OPTION"}})
	for _, r := range roles {
		all += "<" + r.name + "><grants><query>" + strings.Join(r.grants, "</query><query>") +
			"</query></grants></" + r.name + ">"
		taken += "<query>GRANT " + r.name + "</query>"
	}
	return fmt.Appendf(nil, "<clickhouse><profiles><default/></profiles>"+
		"<quotas><default/></quotas><roles>%s</roles><users><default><no_password/>"+
		"<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"+
		"<grants>%s</grants><databases>%s</databases></default></users></clickhouse>", all, taken,
		policies)
}

// tenants is a database with the exporter's table in an engine with a users.xml of its own, which
// is read once. It has no other storage of users: whatever creates a policy or a grant fails, as on
// a server whose only users are in users.xml.
func tenants(t *testing.T, roles []role, tables ...string) *engine {
	t.Helper()
	if os.Getenv("TRACEFLAKETEST_CLICKHOUSE_DSN") != "" {
		t.Skip("for an engine whose users are in users.xml")
	}
	policies := ""
	for _, table := range tables {
		policies += "<" + table + "><filter>SpanName != 'GET /1'</filter></" + table + ">"
	}
	file := filepath.Join(t.TempDir(), "users.xml")
	text := users(roles, "<tenants>"+policies+"</tenants>")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACEFLAKETEST_CLICKHOUSE_USERS", file)
	e := newEngine(t)
	e.exec("CREATE DATABASE tenants")
	e.run(collectorTable("tenants.spans"), nil)
	e.insert("tenants.spans", few())
	return e
}

// reader is a role that reads the table and the lookup table, and one column of a table whose
// database it may read otherwise.
var reader = role{"reader", []string{"GRANT SELECT ON tenants.spans",
	"GRANT SELECT ON tenants.spans_trace_id_ts", "GRANT INSERT ON tenants.spans"}}

// TestPolicies: prepare prints the missing row policies and stops, for a user who may see them or
// who may not; it continues once they are there, or if somebody has checked them. Missing grants
// are printed.
func TestPolicies(t *testing.T) {
	e := tenants(t, []role{reader, {"column", []string{"GRANT SELECT(TraceId) ON tenants.spans"}},
		{"restricted", []string{"GRANT SELECT ON tenants.*",
			"REVOKE SELECT(SpanName) ON tenants.spans"}},
		{"blind", []string{"GRANT ALL ON tenants.*",
			"GRANT CREATE FUNCTION, DROP FUNCTION ON *.*"}},
	}, "spans")
	operator := adoption{Database: "tenants", Table: "spans"}
	const policy = "CREATE ROW POLICY IF NOT EXISTS `default` ON `tenants`.`spans_other` FOR " +
		"SELECT USING SpanName != 'GET /1' AS PERMISSIVE TO `default`;"
	blind := e.openAt(e.DSN() + "?role=blind")
	tables := func() string {
		return fmt.Sprint(e.exec("SELECT name, uuid, create_table_query FROM system.tables WHERE " +
			"database = 'tenants' ORDER BY name"))
	}
	before := tables()
	_, err := adopt(t.Context(), operator, "prepare", e.db)
	if err == nil || !strings.Contains(err.Error(), policy) {
		t.Errorf("%v lacks %s", err, policy)
	}
	_, err = adopt(t.Context(), operator, "prepare", blind)
	_, query, found := strings.Cut(fmt.Sprint(err), "--policies-checked:\n")
	if !found || tables() != before {
		t.Fatalf("%v; changed from %s to %s", err, before, tables())
	}
	e.is(strings.TrimSuffix(policy, ";"), query) // what somebody else finds out

	if _, err = operator.Swap(t.Context(), blind); err == nil ||
		strings.Contains(err.Error(), "may not see") {
		t.Errorf("a swap of what is not prepared: %v", err)
	}
	operator.PoliciesChecked = true
	plan, err := adopt(t.Context(), operator, "prepare", blind)
	if notes := strings.Join(plan.Notes, "\n"); err != nil ||
		!strings.Contains(notes, "this user may not see grants") {
		t.Errorf("without the right to see access: %v, %s", err, notes)
	}
	if _, err := adopt(t.Context(), operator, "swap", e.db); err == nil ||
		!strings.Contains(err.Error(), policy) {
		t.Errorf("a swap without the policy: %v", err)
	}
}

// TestGrants: with the policy on both tables prepare continues, and prints the missing grants.
func TestGrants(t *testing.T) {
	e := tenants(t, []role{reader, {"column", []string{"GRANT SELECT(TraceId) ON tenants.spans"}},
		{"restricted", []string{"GRANT SELECT ON tenants.*",
			"REVOKE SELECT(SpanName) ON tenants.spans"}}}, "spans", "spans_other")
	operator := adoption{Database: "tenants", Table: "spans"}
	for _, operation := range []string{"prepare", "swap"} {
		plan, err := adopt(t.Context(), operator, operation,
			e.rewriting("default_normal_view_sql_security=NONE", settled.Replace))
		if err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		const grants = "GRANT SELECT ON `tenants`.`spans_all_trace_id_ts` TO `reader`;\n" +
			"GRANT SELECT ON `tenants`.`spans_all` TO `reader`;\n" +
			"GRANT SELECT ON `tenants`.`spans_other` TO `reader`;\n" +
			"GRANT SELECT(`TraceId`) ON `tenants`.`spans_all` TO `column`;\n" +
			"GRANT SELECT(`TraceId`) ON `tenants`.`spans_other` TO `column`;\n" +
			"REVOKE SELECT(`SpanName`) ON `tenants`.`spans_all` FROM `restricted`;\n" +
			"REVOKE SELECT(`SpanName`) ON `tenants`.`spans_other` FROM `restricted`;"
		if notes := strings.Join(plan.Notes, "\n"); operation == "prepare" &&
			!strings.Contains(notes, grants) {
			t.Errorf("the notes lack %s:\n%s", grants, notes)
		}
	}
	// whatever the server's default for views is
	e.is("2", "SELECT countIf(create_table_query LIKE '% SQL SECURITY INVOKER %') FROM "+
		"system.tables WHERE database = 'tenants' AND engine = 'View'")
}

// TestTopK: why create and prepare name a setting where a row policy meets a version of ClickHouse
// that returns too few of the newest spans. If this fails with a newer one, change topK.
func TestTopK(t *testing.T) {
	e := tenants(t, nil, "ours", "spans", "spans_other")
	if version := e.one("SELECT version()"); !strings.HasPrefix(version, "26.7.") {
		t.Skip("the note is about ClickHouse 26.4 to 26.7, and this is", version)
	}
	s := clickhouse.Schema{Database: "tenants", Table: "ours"}
	e.creates(s)
	e.exec("INSERT INTO tenants.ours (Timestamp, SpanName) SELECT " +
		"toDateTime64('2026-10-14 00:00:00', 9) + number / 10, if(number < 100000, " +
		"'GET /0', 'GET /1') FROM numbers(200000)")
	const newest = "SELECT count() FROM (SELECT Timestamp FROM tenants.ours ORDER BY Timestamp " +
		"DESC LIMIT 10"
	e.is("0", newest+")")
	e.is("10", newest+" SETTINGS use_skip_indexes_for_top_k = 0)")
	created, err := s.Plan(t.Context(), e.db)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := adoption{Database: "tenants", Table: "spans"}.Prepare(t.Context(), e.db)
	if err != nil {
		t.Fatal(err)
	}
	status, err := adoption{Database: "tenants", Table: "ours"}.Status(t.Context(), e.db)
	for _, notes := range [][]string{created.Notes, prepared.Notes, status.Notes} {
		if err != nil || !strings.Contains(fmt.Sprint(notes),
			"set use_skip_indexes_for_top_k = 0") {
			t.Errorf("the notes do not name the setting: %q (%v)", notes, err)
		}
	}
}

func countIf(spans []span, is func(span) bool) (n int) {
	for _, s := range spans {
		if is(s) {
			n++
		}
	}
	return n
}
