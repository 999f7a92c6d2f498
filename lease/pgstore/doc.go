// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet, through
// github.com/jackc/pgx/v5. It reads rows, applies the rule of package
// [github.com/traceflake/traceflake/lease/driver], and writes the rows that no
// one else has written meanwhile.
//
// # What it needs
//
// PostgreSQL 12 or newer, and its primary: a standby is read-only and returns
// an error that says so. Acquire, Renew and Release are two statements and two
// round trips, Get is one, and each statement is a transaction, without session
// state or named prepared statements: they work through pgbouncer in transaction
// mode. The default isolation level, read committed, is best; with a stricter
// one statements are retried after serialization failures.
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
//
// The store has at most two connections, whatever the parameters say, and
// closes them after 30 s without a call.
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
// which is fixed when the table is made: "traceflake leases, schema 1, blocks
// of 8 nodes". All rows are inserted then: 16384 for blocks of 8 nodes, about 2
// MB.
//
// A block is free if granted_until is not after the client's time. Never set it
// back, delete rows, or recreate the table while processes hold leases from it:
// grants would be forgotten and IDs made twice. Reading is harmless:
//
//	SELECT node, owner, granted_until FROM traceflake_leases WHERE granted_until > now();
//
// # Durability and failover
//
// A grant that the server forgets can be granted twice. So each write sets
// synchronous_commit to on for its own transaction, whatever the default of the
// database or role is (remote_apply, which waits for more, stays), and a call
// that returns a grant waits until what it read is durable.
//
// If the wait for a synchronous standby is cancelled, by statement_timeout or
// pg_cancel_backend, the server commits with a warning. Any warning is therefore
// an error of the call, whose outcome is unknown: the Keeper then reads the
// block, and that read waits for the standby, too.
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
// [github.com/traceflake/traceflake/lease.MaxClockAhead] is refused. Uniqueness
// needs no clock; to raise a restored table does: see docs/operating.md.
//
// The repository tests this package against a real PostgreSQL in integration/lease/pgstore.
package pgstore
