// Package postgres has SQL functions for trace IDs, and for UUIDs of version 1,
// in PostgreSQL 13 or newer. They are plain SQL: no extension, no superuser.
//
//	trace_id_time(text | bytea | uuid)  timestamptz  the clear half's time; NULL if it is not an ID
//	trace_id_min(timestamptz)           text         the lowest ID of the millisecond; also trace_id_min_bytea, trace_id_min_uuid
//	trace_id_max(timestamptz)           text         the highest, inclusive; also trace_id_max_bytea, trace_id_max_uuid
//	trace_id_at(timestamptz)            text         a new ID for an old row, or NULL; also trace_id_at_bytea, trace_id_at_uuid
//	uuid_v1_time(uuid)                  timestamptz  NULL for another version
//	uuid_v1_at(timestamptz, clock_seq int, node macaddr)  uuid; NULL out of range
//
// All return NULL for NULL and are parallel safe. trace_id_at is volatile, the
// others are immutable, and trace_id_time is inlined. None raises an error,
// whatever its input, and none depends on the session's search path, time zone
// or formats. They agree with package traceid, value by value:
//
//   - An ID as text is 32 lower-case hex digits, as OpenTelemetry writes it.
//     For other text the result is NULL: upper case, shorter, with dashes, empty. Cast UUIDs
//     that are stored as text to uuid.
//   - Foreign IDs have a time too, which is meaningless: a random one any time
//     from 2020 to 2089, a 64-bit one the first millisecond of 2020.
//   - Bounds are clamped to 2020 and 2089, and so are the two infinities.
//     trace_id_at, which must not make up a time, returns NULL for times out of
//     that range.
//
// # Creating them
//
// Run the statements of [Statements]; running them again does no harm. The role
// needs CREATE on the schema. Other roles need EXECUTE, which PostgreSQL grants
// to all by default.
//
// # Searching by time
//
// The type uuid takes 16 bytes and sorts as the IDs do; so does bytea. A column
// of text needs the collation C: others may sort hex digits differently.
//
//	CREATE TABLE requests (
//		trace_id text COLLATE "C" PRIMARY KEY,
//		path     text NOT NULL
//	);
//
// A range of IDs is then a range of the column's own index:
//
//	SELECT * FROM requests
//	WHERE trace_id BETWEEN trace_id_min('2026-11-20 10:00Z') AND trace_id_max('2026-11-20 10:05Z');
//
// If the column cannot be sorted by ID, index the time:
//
//	CREATE INDEX requests_time ON requests (trace_id_time(trace_id));
//
//	SELECT * FROM requests
//	WHERE trace_id_time(trace_id) >= '2026-11-20 10:00Z' AND trace_id_time(trace_id) < '2026-11-20 10:05Z';
//
// # Old rows
//
//	UPDATE requests SET trace_id = trace_id_at(created_at) WHERE trace_id IS NULL;
//
// 87 bits of such an ID are random: IDs of one millisecond are in no order, and
// no secret decodes or verifies them. If uniqueness must be guaranteed, use
// Generator.NewTraceIDAt of package idgen.
//
// The bytes of UUIDs of version 1 do not sort by time. For tables keyed by
// them, use an index on uuid_v1_time(id). uuid_v1_at makes such a UUID for a
// row that has none; it has no state, so clock_seq must differ between rows of
// one microsecond and node.
package postgres
