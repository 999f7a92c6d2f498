package pgstore

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// schemaVersion is raised when an older version of this package could damage
// the tables.
const schemaVersion = 1

// statement fills in the full names of the tables in a schema. No statement relies on the server's
// search path: behind pgbouncer it may be another client's.
func (s *Store) statement(schema, sql string) string {
	return strings.NewReplacer(
		"{blocks}", pgx.Identifier{schema, s.name}.Sanitize(),
		"{store}", pgx.Identifier{schema, s.name + suffix}.Sanitize(),
		"{now}", nowSQL, "{durable}", durableSQL, "{columns}", columnsSQL,
	).Replace(sql)
}

// suffix is what follows the name of the table of blocks in that of the table which describes the store.
const suffix = "_store"

// Times are passed as numbers, whose format no setting of the server changes. A time of 0 is
// that before the first grant.
const (
	// The server's clock when it received the statement, in microseconds. It may wait for a lock
	// after that: then it is early, which refuses a client rather than trusting it.
	nowSQL = `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`

	// A commit that is not flushed can be lost, and with it a grant; a stronger setting is kept. If
	// the wait for a standby is cancelled, only a warning says so. Both settings last until the end
	// of this transaction, including its commit.
	durableSQL = `set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) || set_config('client_min_messages', 'warning', true)`

	// What [scan] reads of a block.
	columnsSQL = `coalesce(b.node, 0), coalesce(b.version, 0), coalesce(b.nonce, ''), coalesce(b.owner, ''),
		coalesce(ceil(extract(epoch FROM b.granted_from)), 0)::bigint,
		coalesce(ceil(extract(epoch FROM nullif(b.granted_until, '-infinity'))), 0)::bigint`
)

// findSQL returns the schemas that have a table of the name $1: those in which this role can read it,
// and the others. If $2 is not empty, it is the only schema.
const findSQL = `SELECT coalesce(array_agg(schema) FILTER (WHERE readable), '{}'), coalesce(array_agg(schema) FILTER (WHERE NOT readable), '{}')
	FROM (
		SELECT n.nspname::text AS schema, has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND c.relkind = 'r' AND c.relpersistence <> 't' AND $2::text IN ('', n.nspname::text)
		ORDER BY 1
	) AS found`

const aboutSQL = `SELECT {now}, schema, id, extract(epoch FROM created)::bigint, first_node, nodes, block_size, longest_ttl,
	coalesce(extract(epoch FROM raised), 0)::bigint, secrets FROM {store}`

// beginSQL begins a transaction of an operator, one at a time.
const beginSQL = `SELECT {durable}, pg_advisory_xact_lock(8390876135275523179)`

const createSQL = `CREATE TABLE {blocks} (
		node          integer PRIMARY KEY,
		store         text NOT NULL,
		granted_from  timestamptz,
		granted_until timestamptz NOT NULL DEFAULT '-infinity',
		nonce         text UNIQUE,
		owner         text,
		version       bigint NOT NULL DEFAULT 0
	);
	CREATE INDEX ON {blocks} (granted_until);
	CREATE TABLE {store} (
		schema      integer NOT NULL,
		id          text PRIMARY KEY,
		created     timestamptz NOT NULL,
		first_node  bigint NOT NULL,
		nodes       bigint NOT NULL,
		block_size  bigint NOT NULL,
		longest_ttl bigint NOT NULL, -- seconds
		raised      timestamptz,
		secrets     text[] NOT NULL
	)`

const describeSQL = `INSERT INTO {store} VALUES ($1, $2, to_timestamp($3::bigint), $4, $5, $6, $7, NULL, $8)`

const blocksSQL = `INSERT INTO {blocks} (node, store) SELECT n, $1 FROM generate_series($2::bigint, $3::bigint, $4::bigint) AS n`

const addSecretSQL = `UPDATE {store} SET secrets = CASE WHEN $2 = ANY (secrets) THEN secrets ELSE secrets || $2::text END
	WHERE id = $1 RETURNING {durable}`

const recordSQL = `UPDATE {store} SET raised = to_timestamp($2::bigint) WHERE id = $1`

// raiseSQL is [driver.Block.Raise] for every block.
const raiseSQL = `UPDATE {blocks} SET nonce = NULL, owner = NULL, granted_until = greatest(granted_until, to_timestamp($2::bigint)),
	version = version + CASE WHEN version > 0 AND nonce IS NULL AND granted_until >= to_timestamp($2::bigint) THEN 0 ELSE 1 END
	WHERE store = $1`

const listSQL = `SELECT {now}, b.store, {columns} FROM {blocks} AS b WHERE version > 0 ORDER BY node`

// Locking the row makes this a writing transaction, so that its commit waits
// for disk and standby: the commit read here may still be waiting for them if
// its client was disconnected.
const getSQL = `SELECT {now}, b.store, {columns}, {durable} FROM {blocks} AS b WHERE node = $1 FOR UPDATE`

// acquireSQL returns the block that has the nonce $1, or grants the one that has been free for
// longest from $3 to $4, once the server's clock has reached microsecond $6. If it does neither, the
// node is NULL, and the last column tells whether a block was free.
const acquireSQL = `WITH again AS (
	SELECT * FROM {blocks} WHERE nonce = $1 AND store = $2 FOR UPDATE
), free AS (
	SELECT node FROM {blocks} WHERE granted_until <= to_timestamp($3::bigint) AND store = $2
		AND {now} >= $6::bigint AND NOT EXISTS (SELECT FROM again)
	ORDER BY granted_until LIMIT 1 FOR UPDATE SKIP LOCKED
), granted AS (
	UPDATE {blocks} AS b SET version = b.version + 1, nonce = $1, owner = nullif($5, ''),
		granted_from = to_timestamp($3::bigint), granted_until = to_timestamp($4::bigint)
	FROM free WHERE b.node = free.node AND b.store = $2 AND b.granted_until <= to_timestamp($3::bigint)
	RETURNING b.*
)
SELECT {now}, coalesce(b.store, (SELECT store FROM {blocks} LIMIT 1), ''), {columns},
	{durable}, b.node IS NULL AND EXISTS (SELECT FROM {blocks} WHERE granted_until <= to_timestamp($3::bigint))
FROM (VALUES (0)) AS one LEFT JOIN (SELECT * FROM again UNION ALL SELECT * FROM granted) AS b ON true`

// replaceSQL writes a block over the one that was read, which $1 to $7 are, once the server's clock
// has reached microsecond $11.
const replaceSQL = `UPDATE {blocks} AS b SET version = version + 1, nonce = $8, owner = nullif($9, ''), granted_until = to_timestamp($10::bigint)
	WHERE node = $1 AND store = $2 AND version = $3 AND nonce = $4 AND coalesce(owner, '') = $5
		AND granted_from = to_timestamp($6::bigint) AND granted_until = to_timestamp($7::bigint) AND {now} >= $11::bigint
	RETURNING {now}, b.store, {columns}, {durable}`
