package pgstore

// The statements. Each has the full names of the table and the view: {schema} is their schema, and
// no setting of a role, database or pooled session changes what they find or return.

// placeSQL returns the table's place: the server's identity, which its physical standbys share, the
// database, and the table. No copy elsewhere has all three.
const placeSQL = `concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
	(SELECT oid FROM pg_database WHERE datname = current_database()), tableoid)`

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

// objectSQL lists the columns of [row]. The data is in hex digits, whatever bytea_output is.
const objectSQL = `name, ` + versionSQL + ` AS version, encode(data, 'hex') AS data, ` +
	nowSQL + ` AS now, ` +
	placeSQL + ` AS place, ` + durableSQL + ` AS durable`

// readSQL locks the row without hindering writers. So it is a writing transaction, and its commit
// waits for disk and standby: the row's last commit may not be durable yet if its client was
// disconnected.
const readSQL = `SELECT ` + objectSQL +
	` FROM {schema}.traceflake_store WHERE name = $1 FOR KEY SHARE`

const listSQL = `SELECT ` + objectSQL + ` FROM {schema}.traceflake_store ORDER BY name`

const replaceSQL = `UPDATE {schema}.traceflake_store SET data = $3::bytea
	WHERE name = $1 AND ` + versionSQL + ` = $2 RETURNING ` + objectSQL

const insertSQL = `INSERT INTO {schema}.traceflake_store (name, data)
	VALUES ($1, $2::bytea) ON CONFLICT DO NOTHING RETURNING ` + objectSQL

// createSQL creates the table, one operator at a time, and the view with a row for each block, for
// people.
const createSQL = `BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT ` + durableSQL + `, pg_advisory_xact_lock(8390876135275523179);
CREATE TABLE IF NOT EXISTS {schema}.traceflake_store (
	name text PRIMARY KEY,
	data bytea NOT NULL
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
COMMIT`
