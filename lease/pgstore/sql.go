package pgstore

// The statements. Each has the full names of the tables and the view: {schema} is their schema, and
// no setting of a role, database or pooled session changes what they find or return.

// placeSQL returns where the store is, or NULL if that cannot be known. The row of an unlogged
// table has a random token. PostgreSQL empties that table whenever it recovers from its log: on a
// promoted standby, on a copy of a disk that was in use, after pg_rewind and after a crash. A copy
// of the database has another OID, its dump draws another token, and a copy of a server that was
// shut down has another start. Made logged, the table would be on each standby.
const placeSQL = `(SELECT server.system_identifier || '/' || here.oid || '/' ||
	(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint || '/' || drawn.token
FROM {schema}.traceflake_place AS drawn
	JOIN pg_class AS kept ON kept.oid = drawn.tableoid AND kept.relpersistence = 'u'
	JOIN pg_database AS here ON here.datname = current_database()
	CROSS JOIN pg_control_system() AS server)`

// drawSQL draws the token of a place that has none. Of several clients one does.
const drawSQL = `INSERT INTO {schema}.traceflake_place DEFAULT VALUES ON CONFLICT DO NOTHING`

// nowSQL returns the server's time when it received the statement, in seconds. If the statement
// then waits for a lock, this time is early, which refuses a client rather than trusting it.
const nowSQL = `floor(extract(epoch FROM statement_timestamp()))::bigint`

// durableSQL changes two settings until the end of this transaction, including its commit. A commit
// that is not flushed can be lost, and with it a grant; a stronger setting is kept. If the wait for
// a standby is cancelled, the server only sends a warning.
const durableSQL = `set_config('synchronous_commit', CASE current_setting('synchronous_commit')
	WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) ||
	set_config('client_min_messages', 'warning', true)`

// versionSQL returns the version of an object, a hash of its data, which never recurs.
const versionSQL = `encode(sha256(data), 'hex')`

// answerSQL ends a statement that begins with the objects that it found or wrote. It returns a
// [row] for each of them, or one without a name. The data is in hex digits, whatever bytea_output
// is. The place is that of the snapshot in which the statement runs.
const answerSQL = ` SELECT coalesce(name, '') AS name, coalesce(` + versionSQL + `, '') AS version,
	coalesce(encode(data, 'hex'), '') AS data, ` + nowSQL + ` AS now,
	coalesce(` + placeSQL + `, '') AS place, ` + durableSQL + ` AS durable
FROM (SELECT) AS always LEFT JOIN object ON true`

// readSQL locks the row without hindering writers. So it is a writing transaction, and its commit
// waits for disk and standby: the row's last commit may not be durable yet if its client was
// disconnected.
const readSQL = `WITH object AS (SELECT name, data FROM {schema}.traceflake_store
	WHERE name = $1 FOR KEY SHARE)` + answerSQL

const replaceSQL = `WITH object AS (UPDATE {schema}.traceflake_store SET data = $3::bytea
	WHERE name = $1 AND ` + versionSQL + ` = $4 AND ` + placeSQL + ` = $2
	RETURNING name, data)` + answerSQL

const insertSQL = `WITH object AS (INSERT INTO {schema}.traceflake_store (name, data)
	SELECT $1::text, $3::bytea WHERE ` + placeSQL + ` = $2
	ON CONFLICT DO NOTHING RETURNING name, data)` + answerSQL

// rightsSQL writes nothing, and fails without the rights to begin a history.
const rightsSQL = `WITH place AS (INSERT INTO {schema}.traceflake_place (one)
	SELECT true WHERE false)
INSERT INTO {schema}.traceflake_store (name, data)
	SELECT name, data FROM {schema}.traceflake_store WHERE false`

// createSQL creates the tables, one operator at a time, and the view with a row for each block, for
// people. A generated column is not a part of a dump, and is drawn again when it is restored; its
// function has to be called immutable.
const createSQL = `BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT ` + durableSQL + `, pg_advisory_xact_lock(8390876135275523179);
CREATE TABLE IF NOT EXISTS {schema}.traceflake_store (
	name text PRIMARY KEY,
	data bytea NOT NULL
);
CREATE OR REPLACE FUNCTION {schema}.traceflake_token() RETURNS uuid LANGUAGE sql IMMUTABLE
	AS 'SELECT pg_catalog.gen_random_uuid()';
CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.traceflake_place (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	token uuid NOT NULL GENERATED ALWAYS AS ({schema}.traceflake_token()) STORED
);
CREATE OR REPLACE VIEW {schema}.traceflake_leases AS
SELECT (block->>'Node')::integer AS node,
	nullif(block->>'Start', '0001-01-01T00:00:00Z')::timestamptz AS granted_from,
	(block->>'End')::timestamptz + interval '1 second' *
		(coalesce(block->>'Behind', '0')::bigint / 1000000000) AS granted_until,
	nullif(block->>'Nonce', '') AS nonce, nullif(block->>'Owner', '') AS owner,
	(block->>'Version')::bigint AS version
FROM {schema}.traceflake_store,
	LATERAL unnest(string_to_array(convert_from(data, 'UTF8'), chr(10))) AS line,
	LATERAL (SELECT CASE WHEN line LIKE '{"Node":%' THEN line::jsonb END AS block) AS parsed
WHERE name LIKE 'page-%' AND block IS NOT NULL;
` + drawSQL + `;
COMMIT`
