// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet: a
// [github.com/traceflake/traceflake/randflake/lease.Store] on a pool of
// github.com/jackc/pgx/v5.
//
// # What it needs
//
// PostgreSQL 12 or newer, and its primary: a standby is read-only and gives an
// error that says so. Each call is one statement and one round trip, without
// session state or named prepared statements, so that it works through
// pgbouncer in transaction mode. The default isolation level, read committed,
// is best; with a stricter one calls are repeated when the server asks for it.
//
// The role needs SELECT and UPDATE on the table. Who uses the store first also
// needs CREATE on the schema; or an operator runs the same by hand first (see
// [Store.Schema]).
//
// Each process keeps few connections and needs them seldom. lease.OpenStore
// with a URL of the scheme postgres or postgresql opens at most two and closes
// them after half a minute; pool_max_conns and pool_max_conn_idle_time in the
// URL change that. A pool given to [New] is the caller's to size: a fleet of
// thousands of processes wants short idle times, or pgbouncer.
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
//	holder         text         who may renew: a random name for each grant, NULL when nobody may
//	version        bigint       raised by every write
//
// The comment on the table holds the version of the schema and the block size,
// which is fixed when the table is made: "traceflake leases, schema 1, blocks
// of 8 nodes". All rows are made with it: 16384 for blocks of 8 nodes, about 2 MB.
//
// A block is free when granted_until is not after the client's time. Never set
// it back, delete rows, or make the table anew while processes run that hold
// leases from it: grants would be forgotten and IDs made twice. Reading is
// harmless:
//
//	SELECT count(*) FROM traceflake_leases WHERE granted_until > now();
//
// # Durability
//
// A grant that the server forgets can be granted twice. So each write sets
// synchronous_commit to on for its own transaction, whatever the default of
// the database or role is (remote_apply, which waits for more, stays), and a
// call that reads waits in the same way for what it read. Not in the store's
// hands are:
//
//   - fsync, full_page_writes and an honest disk, which must be on;
//   - a failover to an asynchronous standby, which forgets the last commits. Use
//     synchronous_standby_names, or keep the store's processes from granting
//     after a failover until [Store.Raise] was called;
//   - a restored backup, which forgets everything since: call Raise before the
//     processes get at it.
//
// # Clocks
//
// A client whose clock is ahead of the server's by more than
// [github.com/traceflake/traceflake/randflake/lease.MaxClockAhead] is refused,
// so that it cannot take blocks for years. Uniqueness needs no clock.
package pgstore
