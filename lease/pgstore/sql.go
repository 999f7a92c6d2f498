package pgstore

import (
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/randflake"
)

// statements are the store's statements for one table. Times are passed as
// numbers, whose format no setting of the server changes.
//
// Each returns one row: the server's clock, synchronous_commit as set for this
// transaction, a flag that the caller checks, and one block.
type statements struct {
	inspect, create                    string
	acquire, renew, release, get, list string
	raise                              string
}

// schemaVersion is raised when an older version of this package could damage
// the table.
const schemaVersion = 2

// The comment on the table. A newer version may change what follows the first
// number.
const (
	commentVersion = "traceflake leases, schema %d"
	commentFormat  = commentVersion + ", blocks of %d nodes"
	oldSchema      = "traceflake leases, schema 1,"
)

func statementsFor(table string, blockSize uint32) statements {
	fill := strings.NewReplacer(
		"{table}", table,
		"{table'}", "'"+table+"'",
		"{comment'}", "'"+fmt.Sprintf(commentFormat, schemaVersion, blockSize)+"'",
		"{old'}", "'"+oldSchema+"'",
		"{new'}", "'"+fmt.Sprintf(commentVersion, schemaVersion)+",'",
		"{size}", fmt.Sprint(blockSize),
		"{last}", fmt.Sprint(randflake.MaxNode),
		"{clock}", clock,
		"{durable}", durable,
		"{block}", block,
		"{mine}", mine,
	).Replace
	// Twice, because inserted parts contain placeholders too.
	full := func(s string) string { return fill(fill(s)) }
	return statements{
		inspect: full(inspectSQL), create: full(createSQL),
		acquire: full(acquireSQL), renew: full(renewSQL), release: full(releaseSQL),
		get: full(getSQL), list: full(listSQL), raise: full(raiseSQL),
	}
}

const (
	clock = `clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
)`

	// A commit that is not flushed can be lost, and with it a grant. The
	// setting lasts until the end of this transaction, including its commit. A
	// stronger one is kept.
	durable = `set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

	block = `b.node, b.nodes, b.version, b.nonce, b.owner,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint`

	mine = `t.node = b.node AND b.nodes = $2 AND b.nonce = $3 AND b.version = $4`
)

// The table and its comment are looked up in one snapshot. to_regclass alone
// may see a newer table whose comment is not visible yet.
const inspectSQL = `SELECT count(*) > 0, max(obj_description(oid, 'pg_class'))
FROM pg_class WHERE oid = to_regclass({table'})`

// If many clients use a new database at once, one creates the table. The others
// may still not see it when they get the lock: to_regclass reads from a cache.
//
// A table of schema 1 is migrated to the current schema in the same way. Its
// column holder, which all statements of the older version use, is renamed:
// this refuses older processes, whose renewals have no nonce.
const createSQL = `DO $traceflake$ DECLARE
	was text;
BEGIN
	PERFORM pg_advisory_xact_lock(8390876135275523179);
	IF to_regclass({table'}) IS NULL THEN
		CREATE TABLE {table} (
			node          integer PRIMARY KEY,
			nodes         integer NOT NULL CHECK (nodes = {size} AND node % {size} = 0),
			granted_from  timestamptz,
			granted_until timestamptz NOT NULL DEFAULT '-infinity',
			nonce         text UNIQUE,
			owner         text,
			version       bigint NOT NULL DEFAULT 0
		);
		CREATE INDEX ON {table} (granted_until);
		INSERT INTO {table} (node, nodes) SELECT n, {size} FROM generate_series(0, {last}, {size}) AS n;
		COMMENT ON TABLE {table} IS {comment'};
		RETURN;
	END IF;
	was := obj_description(to_regclass({table'}), 'pg_class');
	IF starts_with(was, {old'}) THEN
		ALTER TABLE {table} RENAME COLUMN holder TO nonce;
		ALTER TABLE {table} ADD COLUMN owner text;
		EXECUTE format('COMMENT ON TABLE %s IS %L', {table'}, replace(was, {old'}, {new'}));
	END IF;
EXCEPTION WHEN duplicate_table THEN
	NULL;
END $traceflake$`

// The holder is looked up first, so that a request whose response was lost
// finds its grant; the unique index stops two of them at once.
//
// The search begins at a random node and wraps around, so that clients rarely
// conflict. A row that another transaction has locked is skipped. The check for
// any free block in the statement's snapshot avoids a search if there is none,
// and distinguishes that from free blocks that others are just taking.
const acquireSQL = `WITH {clock},
held AS MATERIALIZED (
	SELECT * FROM {table} WHERE nonce = $1 FOR UPDATE
), stock AS MATERIALIZED (
	SELECT EXISTS (SELECT FROM {table} WHERE granted_until <= to_timestamp($3::bigint) AND node BETWEEN $5 AND $6) AS free
), may AS MATERIALIZED (
	SELECT stock.free AND $2::bigint <= clock.now + $7::bigint AND NOT EXISTS (SELECT FROM held) AS take FROM stock, clock
), found AS MATERIALIZED (
	SELECT node FROM (
		SELECT node FROM {table}
		WHERE (SELECT take FROM may) AND granted_until <= to_timestamp($3::bigint) AND node BETWEEN $9 AND $6
		ORDER BY node LIMIT 1 FOR UPDATE SKIP LOCKED
	) AS after UNION ALL SELECT node FROM (
		SELECT node FROM {table}
		WHERE (SELECT take FROM may) AND granted_until <= to_timestamp($3::bigint) AND node BETWEEN $5 AND $9 - 1
		ORDER BY node LIMIT 1 FOR UPDATE SKIP LOCKED
	) AS before LIMIT 1
), granted AS (
	UPDATE {table} AS t SET granted_from = to_timestamp($3::bigint), granted_until = to_timestamp($4::bigint),
		nonce = $1, owner = nullif($8, ''), version = t.version + 1
	FROM found WHERE t.node = found.node
	RETURNING t.*
)
SELECT clock.now, {durable}, stock.free, {block}
FROM clock CROSS JOIN stock LEFT JOIN (SELECT * FROM held UNION ALL SELECT * FROM granted) AS b ON true`

// No other transaction can change a locked row, so that what is read, written
// and returned is one state.
const renewSQL = `WITH {clock},
b AS MATERIALIZED (
	SELECT * FROM {table} WHERE node = $1 FOR UPDATE
), written AS (
	UPDATE {table} AS t SET granted_until = greatest(b.granted_until, to_timestamp($6::bigint)),
		nonce = $5, version = t.version + 1
	FROM b, clock
	WHERE {mine} AND $7::bigint <= clock.now + $8::bigint
	RETURNING t.node
)
SELECT clock.now, {durable}, EXISTS (SELECT FROM written), {block} FROM clock, b`

const releaseSQL = `WITH {clock},
b AS MATERIALIZED (
	SELECT * FROM {table} WHERE node = $1 FOR UPDATE
), written AS (
	UPDATE {table} AS t SET granted_until = least(b.granted_until, greatest(b.granted_from, to_timestamp($6::bigint))),
		nonce = $5, owner = NULL, version = t.version + 1
	FROM b
	WHERE {mine}
	RETURNING t.node
)
SELECT clock.now, {durable}, EXISTS (SELECT FROM written), {block} FROM clock, b`

// Locking the row makes this a writing transaction, so that its commit waits
// for disk and standby: the commit read here may still be waiting for them if
// its client was disconnected.
const getSQL = `WITH {clock},
b AS MATERIALIZED (
	SELECT * FROM {table} WHERE node = $1 FOR UPDATE
)
SELECT clock.now, {durable}, true, {block} FROM clock, b`

const listSQL = `SELECT 0::bigint, '', true, {block} FROM {table} AS b
WHERE version > 0 AND node BETWEEN $1 AND $2 ORDER BY node`

const raiseSQL = `WITH {clock},
written AS (
	UPDATE {table} SET granted_until = greatest(granted_until, to_timestamp($1::bigint)),
		nonce = NULL, owner = NULL, version = version + 1
	WHERE node BETWEEN $2 AND $3
	RETURNING node
)
SELECT clock.now, {durable}, (SELECT count(*) FROM written) = $4::bigint,
	NULL::integer, NULL::integer, NULL::bigint, NULL, NULL, NULL::bigint, NULL::bigint FROM clock`
