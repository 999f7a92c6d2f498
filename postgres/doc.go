// Package postgres provides SQL functions for trace IDs, and for UUIDs of version 1, in PostgreSQL
// 13 or newer. They are plain SQL: no extension, no superuser.
//
//	trace_id_time(text | bytea | uuid)  timestamptz  the clear half's time; NULL if not an ID
//	trace_id_min(timestamptz)           text         the lowest ID of the millisecond
//	trace_id_max(timestamptz)           text         the highest, inclusive
//	trace_id_at(timestamptz)            text         a new ID for an old row, or NULL
//	uuid_v1_time(uuid)                  timestamptz  NULL for another version
//	uuid_v1_at(timestamptz, clock_seq int, node macaddr)  uuid; NULL out of range
//
// For a column of type uuid cast the result, as in trace_id_min(t)::uuid; for bytea use
// decode(trace_id_min(t), 'hex').
//
// All functions return NULL for NULL and are parallel safe. trace_id_at is volatile, the others are
// immutable, and trace_id_time is inlined. No input raises an error, and no result depends on the
// session's search path, time zone or formats. The results are those of package traceid:
//
//   - An ID as text is 32 lower-case hex digits, as OpenTelemetry writes it. For other text (upper
//     case, shorter, with dashes, empty) the result is NULL. Cast UUIDs that are stored as text to
//     uuid.
//   - The time of a foreign ID is meaningless: for a random ID any time from 2020 to 2089, for a
//     64-bit ID the first millisecond of 2020.
//   - Bounds are clamped to 2020 and 2089, and so are the two infinities. trace_id_at returns NULL
//     for times out of that range.
//
// Run the statements of [Statements] once; running them again does no harm. The role needs CREATE
// on the schema. Other roles need EXECUTE, which PostgreSQL grants to all by default.
//
// # Searching by time
//
// The type uuid takes 16 bytes and sorts as the IDs do; so does bytea. A column of type text needs
// the collation C: other collations may sort hex digits differently.
//
//	CREATE TABLE requests (
//		trace_id text COLLATE "C" PRIMARY KEY,
//		path     text NOT NULL
//	);
//
// A range of IDs is then a range of the column's own index:
//
//	SELECT * FROM requests
//	WHERE trace_id BETWEEN trace_id_min('2026-11-20 10:00Z')
//	                   AND trace_id_max('2026-11-20 10:05Z');
//
// If the column cannot be sorted by ID, index the time:
//
//	CREATE INDEX requests_time ON requests (trace_id_time(trace_id));
//
//	SELECT * FROM requests
//	WHERE trace_id_time(trace_id) >= '2026-11-20 10:00Z'
//	  AND trace_id_time(trace_id) < '2026-11-20 10:05Z';
//
// # Old rows
//
//	UPDATE requests SET trace_id = trace_id_at(created_at) WHERE trace_id IS NULL;
//
// 87 bits of such an ID are random: IDs of one millisecond are in no order, and they cannot be
// decoded or verified. If uniqueness must be guaranteed, use Generator.NewTraceIDAt of package
// idgen.
package postgres
