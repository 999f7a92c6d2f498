// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet, through
// github.com/jackc/pgx/v5. Importing it registers postgres:// and postgresql://, for example in
// TRACEFLAKE_STORE:
//
//	postgres://user:password@host:port,host:port/database?parameter=value&…
//
// Parameters are those of libpq and pgx; search_path is the schema of the store, by default public.
// The store needs the primary of PostgreSQL 13 or newer. It opens at most two connections, whatever
// the parameters are, and closes them after 30 s without a call.
//
// A store is a table, traceflake_store, with the objects of package
// [github.com/traceflake/traceflake/lease/driver], an unlogged table, traceflake_place, by which a
// failover or a copy is noticed, and a view, traceflake_leases, with a row for each block that was
// ever granted. A call takes a few statements. Each is a transaction of its own, without session
// state or named prepared statements, so calls work through pgbouncer in transaction mode.
//
// A call returns only what is durable, also on the synchronous standbys, whatever
// synchronous_commit is. README.md lists the rights that a role needs, and what happens after
// failovers, restores and copies.
package pgstore
