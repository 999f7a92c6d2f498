// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet: a
// [github.com/traceflake/traceflake/lease.Store] on a pool of
// github.com/jackc/pgx/v5.
//
// # What it needs
//
// PostgreSQL 12 or newer, and its primary: a standby is read-only and returns
// an error that says so. Each call is one statement and one round trip, without
// session state or named prepared statements, so that it works through
// pgbouncer in transaction mode. The default isolation level, read committed,
// is best; with a stricter one calls are retried after serialization failures.
//
// The role needs SELECT and UPDATE on the table. The role that uses the store
// first also needs CREATE on the schema; or an operator runs [Store.Schema]
// first.
//
// # By URL
//
// Importing the package registers it for URLs, for example in TRACEFLAKE_STORE:
//
//	postgres://user:password@host:port,host:port/database?parameter=value&…
//
// postgresql:// is the same. Parameters are those of libpq and pgx. Among them:
//
//	sslmode, sslrootcert, sslcert, sslkey  TLS
//	target_session_attrs=read-write        of several hosts, the primary
//	search_path=fleet_a                    the schema of the table, a fleet's own
//	connect_timeout=5                      seconds
//	pool_max_conns=2                       connections at most
//	pool_max_conn_idle_time=30s            after which an idle one is closed
//
// The values of the last two are the defaults here: a process needs few
// connections, and rarely. The caller sizes a pool given to [New]; with
// thousands of processes set short idle times, or use pgbouncer.
//
// # The table
//
// One table, traceflake_leases unless [WithTable] names another, in the first
// schema of the search path, with one row for each block of nodes:
//
//	node           integer      first node of the block; the key
//	nodes          integer      nodes in the block, the same in every row
//	granted_from   timestamptz  start of the last grant, NULL before the first
//	granted_until  timestamptz  end of the last grant, exclusive; -infinity before the first
//	nonce          text         names the last write; its client may renew unless it was a
//	                            release; NULL before the first grant and after Raise
//	owner          text         who holds the block, for operators; NULL if nobody does
//	version        bigint       raised by every write
//
// The comment on the table holds the version of the schema and the block size,
// which is fixed when the table is made: "traceflake leases, schema 2, blocks
// of 8 nodes". All rows are inserted then: 16384 for blocks of 8 nodes, about 2
// MB.
//
// A block is free if granted_until is not after the client's time. Never set it
// back, delete rows, or recreate the table while processes hold leases from it:
// grants would be forgotten and IDs made twice. Reading is harmless:
//
//	SELECT node, owner, granted_until FROM traceflake_leases WHERE granted_until > now();
//
// # Older versions
//
// A table of schema 1 is migrated to schema 2, in one transaction, by the first
// call of this version, except List, which is read-only and refuses it. Every
// grant is kept. That client's role must own the table; otherwise an operator
// runs [Store.Schema], which does nothing if the table is current. From then on
// the server refuses processes of the older version: their statements use a
// column that has been renamed. They can use their current grants but get no
// others, so restart them with this version within one TTL.
//
// # Durability and failover
//
// A grant that the server forgets can be granted twice. So each write sets
// synchronous_commit to on for its own transaction, whatever the default of the
// database or role is (remote_apply, which waits for more, stays), and a call
// that reads waits until what it read is durable.
//
// After a crash of the primary, and after a failover to a synchronous standby
// (synchronous_standby_names), every acknowledged grant is still there, and
// processes continue as soon as they reach the new primary. The store cannot
// protect against
//
//   - fsync or full_page_writes switched off, or a disk that acknowledges
//     writes too early;
//   - a failover to an asynchronous standby, which forgets the last commits:
//     keep processes from the new primary until [Store.Raise] has been called;
//   - two primaries at once: fence the old one before the new one starts;
//   - a restored backup, which forgets everything since: call Raise before any
//     process reaches it.
//
// # Clocks
//
// A client whose clock is ahead of the server's by more than
// [github.com/traceflake/traceflake/lease.MaxClockAhead] is refused,
// so that it cannot take blocks for years. Uniqueness needs no clock.
//
// The repository tests this package against a real PostgreSQL in integration/lease/pgstore.
package pgstore
