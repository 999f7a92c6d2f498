package pgstore

// The statements. Each has the full names of the tables: {schema} is their schema.
//
// Times are passed as numbers, whose format no setting of the server changes. A time of 0 is
// that before the first grant.

// nowSQL is the server's clock when it received the statement, in microseconds. The statement may
// wait for a lock after that: then it is early, which refuses a client rather than trusting it.
const nowSQL = `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`

// durableSQL changes two settings until the end of this transaction, including its commit. A commit
// that is not flushed can be lost, and with it a grant; a stronger setting is kept. If the wait for
// a standby is cancelled, only a warning says so.
const durableSQL = `set_config('synchronous_commit', CASE current_setting('synchronous_commit')
	WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) || set_config('client_min_messages', 'warning', true)`

// describeSQL returns the description of the store, and the number of rows.
const describeSQL = `SELECT count(*) OVER (), ` + nowSQL + `, schema, description FROM {schema}.traceflake_leases_store`

// beginSQL begins a transaction of an operator, one at a time.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ` + durableSQL + `, pg_advisory_xact_lock(8390876135275523179)`

const createSQL = `CREATE TABLE {schema}.traceflake_leases_store (
	schema      integer NOT NULL,
	id          text PRIMARY KEY,
	description jsonb NOT NULL
);
CREATE TABLE {schema}.traceflake_leases (
	node          integer PRIMARY KEY,
	store         text NOT NULL,
	granted_from  timestamptz,
	granted_until timestamptz NOT NULL DEFAULT '-infinity',
	nonce         text UNIQUE,
	owner         text,
	version       bigint NOT NULL DEFAULT 0
);
CREATE INDEX ON {schema}.traceflake_leases (granted_until)`

const insertSQL = `WITH described AS (
	INSERT INTO {schema}.traceflake_leases_store VALUES ($1, $2, $3::text::jsonb)
)
INSERT INTO {schema}.traceflake_leases (node, store) SELECT n, $2 FROM generate_series($4::bigint, $5::bigint, $6::bigint) AS n`

const addSecretSQL = `UPDATE {schema}.traceflake_leases_store
	SET description = jsonb_set(description, '{Secrets}', (description->'Secrets') - $2::text || to_jsonb($2::text)) WHERE id = $1 RETURNING ` + durableSQL

// raiseSQL is [driver.Block.Raise] for every block.
const raiseSQL = `WITH recorded AS (
	UPDATE {schema}.traceflake_leases_store SET description = jsonb_set(description, '{Raised}', to_jsonb($3::text)) WHERE id = $1
)
UPDATE {schema}.traceflake_leases SET nonce = NULL, owner = NULL, granted_until = greatest(granted_until, to_timestamp($2::bigint)),
	version = version + CASE WHEN version > 0 AND nonce IS NULL AND granted_until >= to_timestamp($2::bigint) THEN 0 ELSE 1 END
WHERE store = $1`

// columnsSQL are what [description.scan] reads of a block, after the time and its store.
const columnsSQL = `coalesce(b.node, 0), coalesce(b.version, 0), coalesce(b.nonce, ''), coalesce(b.owner, ''),
	coalesce(ceil(extract(epoch FROM b.granted_from)), 0)::bigint,
	coalesce(ceil(extract(epoch FROM nullif(b.granted_until, '-infinity'))), 0)::bigint`

const listSQL = `SELECT ` + nowSQL + `, b.store, ` + columnsSQL + ` FROM {schema}.traceflake_leases AS b WHERE version > 0 ORDER BY node`

// Locking the row makes this a writing transaction, so that its commit waits
// for disk and standby: the commit read here may still be waiting for them if
// its client was disconnected.
const getSQL = `SELECT ` + nowSQL + `, b.store, ` + columnsSQL + `, ` + durableSQL + ` FROM {schema}.traceflake_leases AS b WHERE node = $1 FOR UPDATE`

// acquireSQL returns the block that has the nonce $1, or grants the one that has been free for
// longest from $3 to $4, once the server's clock has reached microsecond $6. If it does neither, the
// node and the version are 0; the last column tells whether another client has locked a free block.
const acquireSQL = `WITH again AS (
	SELECT * FROM {schema}.traceflake_leases WHERE nonce = $1 AND store = $2 FOR UPDATE
), free AS (
	SELECT node FROM {schema}.traceflake_leases WHERE granted_until <= to_timestamp($3::bigint) AND store = $2
		AND ` + nowSQL + ` >= $6::bigint AND NOT EXISTS (SELECT FROM again)
	ORDER BY granted_until LIMIT 1 FOR UPDATE SKIP LOCKED
), granted AS (
	UPDATE {schema}.traceflake_leases AS b SET version = b.version + 1, nonce = $1, owner = nullif($5, ''),
		granted_from = to_timestamp($3::bigint), granted_until = to_timestamp($4::bigint)
	FROM free WHERE b.node = free.node AND b.store = $2 AND b.granted_until <= to_timestamp($3::bigint)
	RETURNING b.*
)
SELECT ` + nowSQL + `, coalesce(b.store, (SELECT store FROM {schema}.traceflake_leases LIMIT 1), ''), ` + columnsSQL + `, ` + durableSQL + `,
	b.node IS NULL AND EXISTS (SELECT FROM {schema}.traceflake_leases WHERE granted_until <= to_timestamp($3::bigint)
		AND store = $2 AND ` + nowSQL + ` >= $6::bigint)
FROM (VALUES (0)) AS one LEFT JOIN (SELECT * FROM again UNION ALL SELECT * FROM granted) AS b ON true`

// replaceSQL writes a block over the one that was read, which $1 to $7 are, once the server's clock
// has reached microsecond $11.
const replaceSQL = `UPDATE {schema}.traceflake_leases AS b SET version = version + 1, nonce = $8, owner = nullif($9, ''), granted_until = to_timestamp($10::bigint)
	WHERE node = $1 AND store = $2 AND version = $3 AND nonce = $4 AND coalesce(owner, '') = $5
		AND granted_from = to_timestamp($6::bigint) AND granted_until = to_timestamp($7::bigint) AND ` + nowSQL + ` >= $11::bigint
	RETURNING ` + nowSQL + `, b.store, ` + columnsSQL + `, ` + durableSQL
