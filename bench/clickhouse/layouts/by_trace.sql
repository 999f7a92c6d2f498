-- All columns again, in the order of IDs. An existing table also needs MATERIALIZE PROJECTION.
ALTER TABLE spans ADD PROJECTION by_trace (SELECT * ORDER BY TraceId);
