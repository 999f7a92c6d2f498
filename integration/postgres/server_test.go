// Package postgres has only tests: they compare the SQL functions of package postgres in a real
// PostgreSQL with Go's results for the same IDs.
package postgres_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/contrib/postgres"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

func TestMain(m *testing.M) { os.Exit(servers.OnePostgres(m)) }

// database is a connection to a new database.
type database struct {
	t    *testing.T
	conn *pgx.Conn
}

// functions returns a database with our functions.
func functions(t *testing.T) database {
	t.Helper()
	d := database{t, child.ForTest(t, servers.Postgres).Connect(t)}
	d.exec("SET synchronous_commit = off")
	d.create("")
	return d
}

func (d database) create(schema string) {
	d.t.Helper()
	for _, s := range postgres.Statements(schema) {
		d.exec(s)
	}
}

func (d database) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatalf("%v in\n%s", err, sql)
	}
}

// texts returns the only column of a query as text.
func (d database) texts(sql string, args ...any) []string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), "SELECT coalesce(c::pg_catalog.text, 'NULL') FROM ("+
		sql+") AS q (c)", args...)
	if err == nil {
		var texts []string
		if texts, err = pgx.CollectRows(rows, pgx.RowTo[string]); err == nil {
			return texts
		}
	}
	d.t.Fatalf("%v in\n%s", err, sql)
	return nil
}

// want checks the only value of a query.
func (d database) want(want, sql string) {
	d.t.Helper()
	if got := d.texts(sql); !slices.Equal(got, []string{want}) {
		d.t.Errorf("got %q, want %q from\n%s", got, want, sql)
	}
}

// same checks an expression for each of the inputs, which are its column v.
func (d database) same(expression string, inputs []string, want func(i int) string) {
	d.t.Helper()
	got := d.texts("SELECT "+expression+
		" FROM unnest($1::text[]) WITH ORDINALITY AS i (v, n) ORDER BY n", inputs)
	if len(got) != len(inputs) {
		d.t.Fatalf("%s: %d values for %d inputs", expression, len(got), len(inputs))
	}
	for i, g := range got {
		if w := want(i); g != w {
			d.t.Fatalf("%s of %q is %s, want %s", expression, inputs[i], g, w)
		}
	}
}

func (d database) plan(sql string) string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), "EXPLAIN (VERBOSE, COSTS OFF) "+sql)
	if err != nil {
		d.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// The functions depend neither on the session's settings nor on the name of their schema, nor on
// its search path with other objects under our names and under the names that our functions use.
func TestSurroundings(t *testing.T) {
	db := functions(t)
	const quoted = `"Team ""A""; x"`
	db.exec("CREATE SCHEMA " + quoted)
	db.create(`Team "A"; x`)
	db.want("true", "SELECT count(*) FILTER (WHERE pronamespace = 'public'::regnamespace) * 2 = "+
		"count(*) FROM pg_proc WHERE proname ~ '^(trace_id|uuid_v1)_'")
	db.exec(`CREATE TABLE ids (id text)`)
	db.exec(`INSERT INTO ids VALUES ('32d1f0a9c8000005a1b2c3d4e5f60718'), ('')`)
	db.exec(`CREATE INDEX ids_time ON ids (` + quoted + `.trace_id_time(id))`)
	db.exec("CREATE SCHEMA evil")
	fail := ` LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'evil was called'; END $$`
	for _, f := range []string{"to_timestamp(float8) RETURNS timestamptz",
		"encode(bytea, text) RETURNS text",
		"uuid_send(uuid) RETURNS bytea", "lpad(text, int, text) RETURNS text",
		"to_hex(bigint) RETURNS text", "date_part(text, timestamp) RETURNS float8",
		"date_trunc(text, timestamp) RETURNS timestamp",
		"timezone(text, timestamptz) RETURNS timestamptz", "gen_random_uuid() RETURNS uuid",
		"substr(text, int, int) RETURNS text", "length(bytea) RETURNS int",
		"octet_length(text) RETURNS int", "matches(text, text) RETURNS boolean",
		"concat(text, text) RETURNS text", "plus(bigint, bigint) RETURNS bigint",
		"over(float8, float8) RETURNS float8"} {
		db.exec("CREATE FUNCTION evil." + f + fail)
	}
	for name, o := range map[string]string{"||": "concat, LEFTARG = text, RIGHTARG = text",
		"~": "matches, LEFTARG = text, RIGHTARG = text",
		"+": "plus, LEFTARG = bigint, RIGHTARG = bigint",
		"/": "over, LEFTARG = float8, RIGHTARG = float8"} {
		db.exec("CREATE OPERATOR evil." + name + " (FUNCTION = evil." + o + ")")
	}
	for _, typ := range []string{"text", "bytea", "uuid", "float8", "int8", "timestamptz",
		"interval"} {
		db.exec("CREATE DOMAIN evil." + typ + " AS pg_catalog.int4 CHECK (false)")
	}
	// Each function once, @ with its schema; the query's own names are qualified.
	query := strings.NewReplacer("@", quoted+".", "$",
		"pg_catalog.").Replace(`SELECT $concat_ws(' ',
		@trace_id_time('32d1f0a9c8000005a1b2c3d4e5f60718'::$text) =
			@trace_id_time($decode('32d1f0a9c8000005a1b2c3d4e5f60718', 'hex')),
		$to_char($timezone('UTC', @trace_id_time('32d1f0a9c8000005a1b2c3d4e5f60718'::$uuid)),
			'YYYY-MM-DD HH24:MI:SS.US'),
		@trace_id_min($to_timestamp(1800000000.5)), @trace_id_max($to_timestamp(1800000000.5)),
		$substr(@trace_id_at($to_timestamp(1800000000.5)), 1, 10))`)
	for _, setting := range []string{
		"TimeZone = 'UTC'", "TimeZone = 'Pacific/Kiritimati'", "TimeZone = 'America/St_Johns'",
		"DateStyle = 'SQL, DMY'", "DateStyle = 'German'",
		"IntervalStyle = 'sql_standard'", "IntervalStyle = 'iso_8601'",
		"standard_conforming_strings = off", "extra_float_digits = -15",
		"bytea_output = 'escape'", "jit_above_cost = 0", "quote_all_identifiers = on",
		"default_transaction_read_only = on",
		"search_path = ''", "search_path = pg_catalog", "search_path = evil, pg_catalog, public",
	} {
		db.exec("SET " + setting)
		t.Log(setting)
		db.want("t 2033-10-31 13:25:50.096000 19dcfab4fa0000000000000000000000 "+
			"19dcfab4fa7fffffffffffffffffffff 19dcfab4fa", query)
		if strings.HasPrefix(setting, "search_path") {
			db.exec("REINDEX TABLE public.ids")
			db.exec("ANALYZE public.ids")
		}
		db.exec("RESET ALL")
	}
}

// trace_id_time does not depend on a column's collation, even if it sorts hex digits in another
// order or is one that regular expressions refuse.
func TestCollations(t *testing.T) {
	db := functions(t)
	if db.texts("SELECT count(*) FROM pg_collation WHERE collprovider = 'i'")[0] == "0" {
		t.Skip("this PostgreSQL was built without ICU")
	}
	db.exec("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', " +
		"deterministic = false)")
	db.exec(`CREATE TABLE ids (danish text COLLATE "da-x-icu", loose text COLLATE loose)`)
	db.exec(`INSERT INTO ids SELECT id, id FROM unnest(ARRAY['32d1f0a9c8000005a1b2c3d4e5f60718',
		'32D1F0A9C8000005A1B2C3D4E5F60718', 'é', '']) AS id`)
	for _, c := range []string{"danish", "loose"} {
		db.want("32d1f0a9c8000005a1b2c3d4e5f60718",
			`SELECT danish COLLATE "C" FROM ids WHERE trace_id_time(`+c+`) IS NOT NULL`)
	}
	// The reason why the documentation requires the collation C: aa is å there, the last letter.
	db.want("true", `SELECT 'aa' > 'af' COLLATE "da-x-icu" AND 'aa' < 'af' COLLATE "C"`)
}
