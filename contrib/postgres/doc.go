// Package postgres provides SQL functions for trace IDs in PostgreSQL 13 or newer. They are plain
// SQL: no extension, no superuser.
//
//	trace_id_time(text | bytea | uuid)  timestamptz  the clear half's time; NULL if not an ID
//	trace_id_min(timestamptz)           text         the lowest ID of the millisecond
//	trace_id_max(timestamptz)           text         the highest, inclusive
//	trace_id_at(timestamptz)            text         a new ID for an old row, or NULL
//
// The results are those of package traceid. Run the statements of [Statements] once; running them
// again does no harm. The role needs CREATE on the schema. Other roles need EXECUTE, which
// PostgreSQL grants to all by default. The README describes types, indexes and searches by time.
package postgres
