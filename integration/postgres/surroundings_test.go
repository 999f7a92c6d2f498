package postgres_test

import (
	"strings"
	"testing"
)

// everything calls each function once; the result does not depend on the session or the schema. %
// is the schema with its dot.
const everything = `SELECT concat_ws(' ',
	%trace_id_time('32d1f0a9c8000005a1b2c3d4e5f60718'::text) = %trace_id_time(decode('32d1f0a9c8000005a1b2c3d4e5f60718', 'hex')),
	to_char(timezone('UTC', %trace_id_time('32d1f0a9c8000005a1b2c3d4e5f60718'::uuid)), 'YYYY-MM-DD HH24:MI:SS.US'),
	%trace_id_min(to_timestamp(1800000000.5)), encode(%trace_id_min_bytea(to_timestamp(1800000000.5)), 'hex'), %trace_id_min_uuid(to_timestamp(1800000000.5)),
	%trace_id_max(to_timestamp(1800000000.5)), encode(%trace_id_max_bytea(to_timestamp(1800000000.5)), 'hex'), %trace_id_max_uuid(to_timestamp(1800000000.5)),
	substr(%trace_id_at(to_timestamp(1800000000.5)), 1, 10), substr(encode(%trace_id_at_bytea(to_timestamp(1800000000.5)), 'hex'), 1, 10),
	substr(%trace_id_at_uuid(to_timestamp(1800000000.5))::text, 1, 8),
	to_char(timezone('UTC', %uuid_v1_time('c232ab00-9414-11ec-b3c8-9f6bdeced846')), 'YYYY-MM-DD HH24:MI:SS.US'),
	%uuid_v1_at(to_timestamp(1645557742), 13256, '9f:6b:de:ce:d8:46'))`

const everythingsAnswer = "t 2033-10-31 13:25:50.096000 " +
	"19dcfab4fa0000000000000000000000 19dcfab4fa0000000000000000000000 19dcfab4-fa00-0000-0000-000000000000 " +
	"19dcfab4fa7fffffffffffffffffffff 19dcfab4fa7fffffffffffffffffffff 19dcfab4-fa7f-ffff-ffff-ffffffffffff " +
	"19dcfab4fa 19dcfab4fa 19dcfab4 2022-02-22 19:22:22.000000 c232ab00-9414-11ec-b3c8-9f6bdeced846"

func in(schema string) string { return strings.ReplaceAll(everything, "%", schema) }

func TestSessionSettings(t *testing.T) {
	db := functions(t)
	for _, setting := range []string{
		"TimeZone = 'UTC'", "TimeZone = 'Pacific/Kiritimati'", "TimeZone = 'America/St_Johns'", "DateStyle = 'SQL, DMY'", "DateStyle = 'German'",
		"IntervalStyle = 'sql_standard'", "IntervalStyle = 'iso_8601'", "standard_conforming_strings = off", "extra_float_digits = -15",
		"bytea_output = 'escape'", "jit_above_cost = 0", "quote_all_identifiers = on", "default_transaction_read_only = on",
	} {
		db.exec("SET " + setting)
		if got := one[string](db, in("")); got != everythingsAnswer {
			t.Errorf("with %s\ngot  %s\nwant %s", setting, got, everythingsAnswer)
		}
		db.exec("RESET ALL")
	}
}

// A schema with an unusual name, and a search path with other objects under our names and under
// the names that our functions use.
func TestSchemaAndSearchPath(t *testing.T) {
	db := empty(t)
	const name = `Team "A"; x`
	const quoted = `"Team ""A""; x".`
	db.exec(`CREATE SCHEMA "Team ""A""; x"`)
	db.create(name)
	if n := one[int](db, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("%d functions were created in public", n)
	}

	db.exec(`CREATE TABLE ids (id text)`)
	db.exec(`INSERT INTO ids VALUES ('32d1f0a9c8000005a1b2c3d4e5f60718'), ('')`)
	db.exec(`CREATE INDEX ids_time ON ids (` + quoted + `trace_id_time(id))`)
	db.exec("CREATE SCHEMA evil")
	fail := ` LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'evil was called'; END $$`
	for _, f := range []string{"to_timestamp(float8) RETURNS timestamptz", "substring(text, text) RETURNS text", "encode(bytea, text) RETURNS text",
		"uuid_send(uuid) RETURNS bytea", "lpad(text, int, text) RETURNS text", "to_hex(bigint) RETURNS text", "date_part(text, timestamp) RETURNS float8",
		"date_trunc(text, timestamp) RETURNS timestamp", "timezone(text, timestamptz) RETURNS timestamptz", "gen_random_uuid() RETURNS uuid",
		"substr(text, int, int) RETURNS text", "replace(text, text, text) RETURNS text", "decode(text, text) RETURNS bytea",
		"concat(text, text) RETURNS text", "plus(bigint, bigint) RETURNS bigint", "over(float8, float8) RETURNS float8"} {
		db.exec("CREATE FUNCTION evil." + f + fail)
	}
	for name, o := range map[string]string{"||": "concat, LEFTARG = text, RIGHTARG = text", "+": "plus, LEFTARG = bigint, RIGHTARG = bigint", "/": "over, LEFTARG = float8, RIGHTARG = float8"} {
		db.exec("CREATE OPERATOR evil." + name + " (FUNCTION = evil." + o + ")")
	}
	for _, typ := range []string{"text", "bytea", "uuid", "float8", "int8", "timestamptz", "interval"} {
		db.exec("CREATE DOMAIN evil." + typ + " AS pg_catalog.int4 CHECK (false)")
	}
	// The test's own names are qualified for this query.
	query := in(quoted)
	for _, s := range []string{"concat_ws(", "to_timestamp(", "timezone(", "to_char(", "encode(", "decode(", "substr("} {
		query = strings.ReplaceAll(query, s, "pg_catalog."+s)
	}
	for _, s := range []string{"::text", "::uuid"} {
		query = strings.ReplaceAll(query, s, "::pg_catalog."+s[2:])
	}
	for _, path := range []string{"''", "pg_catalog", "evil, pg_catalog, public"} {
		db.exec("SET search_path = " + path)
		if got := one[string](db, query); got != everythingsAnswer {
			t.Errorf("with search_path = %s\ngot  %s\nwant %s", path, got, everythingsAnswer)
		}
		db.exec("REINDEX TABLE public.ids")
		db.exec("ANALYZE public.ids")
	}
}

// trace_id_time does not depend on a column's collation, even if it sorts hex digits in another
// order or is one that regular expressions refuse.
func TestCollations(t *testing.T) {
	db := functions(t)
	if one[int](db, "SELECT count(*) FROM pg_collation WHERE collprovider = 'i'") == 0 {
		t.Skip("this PostgreSQL was built without ICU")
	}
	db.exec(`CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`)
	db.exec(`CREATE TABLE ids (danish text COLLATE "da-x-icu", loose text COLLATE loose)`)
	db.exec(`INSERT INTO ids SELECT id, id FROM unnest(ARRAY['32d1f0a9c8000005a1b2c3d4e5f60718', '32D1F0A9C8000005A1B2C3D4E5F60718', 'é', '']) AS id`)
	for _, c := range []string{"danish", "loose"} {
		if got := column[bool](db, "SELECT trace_id_time("+c+") IS NOT NULL FROM ids"); len(got) != 4 || !got[0] || got[1] || got[2] || got[3] {
			t.Errorf("%s: %v", c, got)
		}
	}
	// The reason why the documentation requires the collation C: aa is å there, the last letter.
	if !one[bool](db, `SELECT 'aa' > 'af' COLLATE "da-x-icu" AND 'aa' < 'af' COLLATE "C"`) {
		t.Error("Danish sorts hex digits as C does: the documentation can be simpler")
	}
}
