// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet, through
// github.com/jackc/pgx/v5. It reads rows, applies the rule of package
// [github.com/traceflake/traceflake/lease/driver], and writes the rows that no one else has
// written meanwhile.
//
// # What it needs
//
// PostgreSQL 12 or newer, and its primary. A call is one statement, which is a transaction
// of its own, without session state or named prepared statements: it works through pgbouncer
// in transaction mode. The first call needs one more, to read the description of
// the store. The default isolation level, read committed, is best; with a stricter one
// statements are retried after serialization failures. A client whose clock is ahead of the server's
// by more than [github.com/traceflake/traceflake/lease.MaxClockAhead] is refused.
//
// An operator creates the store with `traceflake lease create`: the role needs CREATE on the
// schema, and owns the tables. Processes need less:
//
//	GRANT SELECT, UPDATE ON traceflake_leases TO service;
//	GRANT SELECT ON traceflake_leases_store TO service;
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
//	search_path=fleet_a                    the schema of the tables; default: public
//	connect_timeout=5                      seconds
//
// The store has at most two connections, whatever the parameters say, and closes them after
// 30 s without a call.
//
// # The tables
//
// A store is two tables in one schema: traceflake_leases has a row for each block of nodes,
// traceflake_leases_store one row that describes the store. Statements contain the tables' full
// names, so the search path, which behind pgbouncer may be another client's, does not matter. Every
// write has the store's ID as a condition: if the tables are dropped, renamed or exchanged, calls
// return [github.com/traceflake/traceflake/lease.ErrReplaced].
//
//	node           integer      first node of the block; the key
//	store          text         the ID of the store
//	granted_from   timestamptz  start of the last grant, NULL before the first
//	granted_until  timestamptz  end of the last grant, exclusive; -infinity before the first
//	nonce          text         identifies the last write; its client may renew unless it was a
//	                            release; NULL before the first grant and after Raise
//	owner          text         who holds the block, for operators; NULL if nobody does
//	version        bigint       raised by every write
//
// A new store has all its rows: 16384 for blocks of 8 nodes, about 3 MB. Never set granted_until
// back or delete rows. Reading is harmless:
//
//	SELECT node, owner, granted_until FROM traceflake_leases WHERE granted_until > now();
//
// # Durability and failover
//
// A grant that the server forgets can be granted twice. So each write sets
// synchronous_commit to on for its own transaction, whatever the default of the database or
// role is (remote_apply, which waits for more, stays), and a call that returns a grant waits
// until what it read is durable.
//
// If the wait for a synchronous standby is cancelled, the server commits with a warning. So any
// warning is an error of the call, and the transaction sets client_min_messages to warning.
//
// After a failover every acknowledged grant is still there if the new primary has every acknowledged
// commit. With synchronous_standby_names
//
//	'a', 'FIRST 2 (a, b)'   each of these standbys has
//	'FIRST 1 (a, b)'        a has, but while a was disconnected, only b
//	'ANY k (a, b, …)'       for each commit, any k of the n standbys have: one may lag behind
//
// The server acknowledges the same way in each case, so the store cannot tell. With the last
// two, compare pg_last_wal_receive_lsn() of all standbys, or of n-k+1 of them with ANY,
// before the failover, and promote the one furthest ahead. The store cannot protect against
//
//   - a failover to a standby that lags behind, or to an asynchronous one: it forgets the last
//     commits. Keep processes from the new primary until [lease.Admin.Raise] has been called;
//   - fsync or full_page_writes switched off, or a disk that acknowledges writes too early;
//   - two primaries at once: fence the old one before the new one starts;
//   - a restored backup: call Raise before any process reaches it.
package pgstore
