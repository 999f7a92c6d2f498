package pgstore

import (
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/randflake"
)

// statements are the store's statements for one table. They only read rows and
// replace whole rows; driver.Block decides what is written. Times are passed as
// numbers, whose format no setting of the server changes.
type statements struct {
	inspect, create              string
	list, get, getDurable, write string
	free                         string
}

// schemaVersion is raised when an older version of this package could damage
// the table.
const schemaVersion = 1

// The comment on the table. A newer version may change what follows the first
// number.
const (
	commentVersion = "traceflake leases, schema %d"
	commentFormat  = commentVersion + ", blocks of %d nodes"
)

func statementsFor(table string, blockSize uint32) statements {
	full := strings.NewReplacer(
		"{table}", table,
		"{table'}", "'"+table+"'",
		"{comment'}", "'"+fmt.Sprintf(commentFormat, schemaVersion, blockSize)+"'",
		"{size}", fmt.Sprint(blockSize),
		"{last}", fmt.Sprint(randflake.MaxNode),
	).Replace
	return statements{
		inspect: full(inspectSQL), create: full(createSQL),
		list: full(listSQL), get: full(getSQL), getDurable: full(getDurableSQL), write: full(writeSQL),
		free: full(freeSQL),
	}
}

const (
	clockSQL = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

	// What is read of a block, with the server's clock.
	// A time of 0 is that before the first grant.
	rowSQL = clockSQL + `, b.node, b.nodes, b.version, coalesce(b.nonce, ''), coalesce(b.owner, ''),
	coalesce(ceil(extract(epoch FROM b.granted_from)), 0)::bigint,
	coalesce(ceil(extract(epoch FROM nullif(b.granted_until, '-infinity'))), 0)::bigint`

	// A commit that is not flushed can be lost, and with it a grant. The
	// setting lasts until the end of this transaction, including its commit. A
	// stronger one is kept.
	durableSQL = `set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`
)

// The table and its comment are looked up in one snapshot. to_regclass alone
// may see a newer table whose comment is not visible yet.
const inspectSQL = `SELECT obj_description(oid, 'pg_class') FROM pg_class WHERE oid = to_regclass({table'})`

// If many clients use a new database at once, one creates the table. The others
// may still not see it when they get the lock: to_regclass reads from a cache.
const createSQL = `DO $traceflake$ BEGIN
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
	END IF;
EXCEPTION WHEN duplicate_table THEN
	NULL;
END $traceflake$`

const listSQL = rowSQL + ` FROM {table} AS b WHERE node BETWEEN $1 AND $2 ORDER BY node`

const getSQL = rowSQL + ` FROM {table} AS b WHERE node = $1`

// Locking the row makes this a writing transaction, so that its commit waits
// for disk and standby: the commit read here may still be waiting for them if
// its client was disconnected.
const getDurableSQL = rowSQL + `, ` + durableSQL + ` FROM {table} AS b WHERE node = $1 FOR UPDATE`

// freeSQL returns the block that has the nonce $1, or up to $6 blocks of nodes
// $3 to $4 that are free at $2: the first ones from node $5 on, or from $3. The
// check for any free block avoids a search if there is none.
const freeSQL = `WITH stock AS MATERIALIZED (
	SELECT EXISTS (SELECT FROM {table} WHERE granted_until <= to_timestamp($2::bigint) AND node BETWEEN $3 AND $4) AS free
)
` + rowSQL + ` FROM (
	(SELECT * FROM {table} WHERE nonce = $1)
	UNION ALL
	(SELECT * FROM {table} WHERE (SELECT free FROM stock)
		AND granted_until <= to_timestamp($2::bigint) AND node BETWEEN $5 AND $4 ORDER BY node LIMIT $6)
	UNION ALL
	(SELECT * FROM {table} WHERE (SELECT free FROM stock)
		AND granted_until <= to_timestamp($2::bigint) AND node BETWEEN $3 AND $5 - 1 ORDER BY node LIMIT $6)
) AS b LIMIT $6`

// writeSQL replaces the rows that are still as they were read, if the server's
// clock has reached microsecond $11. It returns their nodes.
const writeSQL = `UPDATE {table} AS t SET version = t.version + 1, nonce = nullif(new_nonce, ''), owner = nullif(new_owner, ''),
	granted_from = to_timestamp(nullif(new_from, 0)), granted_until = to_timestamp(new_until)
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
	$7::text[], $8::text[], $9::bigint[], $10::bigint[])
	AS b (node, version, nonce, owner, "from", until, new_nonce, new_owner, new_from, new_until)
WHERE t.node = b.node AND t.version = b.version AND clock_timestamp() >= to_timestamp($11::bigint / 1000000.0)
	AND coalesce(t.nonce, '') = b.nonce AND coalesce(t.owner, '') = b.owner
	AND t.granted_from IS NOT DISTINCT FROM to_timestamp(nullif("from", 0))
	AND t.granted_until = coalesce(to_timestamp(nullif(until, 0)), '-infinity')
RETURNING t.node, ` + durableSQL
