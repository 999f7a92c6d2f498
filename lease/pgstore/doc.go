// Package pgstore keeps leases of nodes in PostgreSQL, for a fleet, through
// github.com/jackc/pgx/v5. Importing it registers postgres:// and postgresql://, for example in
// TRACEFLAKE_STORE:
//
//	postgres://user:password@host:port,host:port/database?parameter=value&…
//
// Parameters are those of libpq and pgx; search_path is the schema of the store, by default public.
// The store needs PostgreSQL 12 or newer, and its primary. It has at most two connections, whatever
// the parameters say, and closes them after 30 s without a call.
//
// A store is one table, traceflake_store, of the objects of package
// [github.com/traceflake/traceflake/lease/driver], and a view, traceflake_leases, that shows people
// a row for each block that was ever granted. A call is one or two statements, each of which is a
// transaction of its own, without session state or named prepared statements: it works through
// pgbouncer in transaction mode. A renewal is two, a read and a conditional write.
//
// Each write is durable before it is answered, whatever synchronous_commit says, on the synchronous
// standbys, too; and so is what a call read. docs/postgresql.md has the rights that a role needs,
// and says which failovers forget a grant.
package pgstore
