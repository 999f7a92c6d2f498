-- Tables that cannot be adopted: what happens to the exporter's, after the reason.

-- Coroot's: column ScopeName is missing; this is not the table of the Collector's exporter; Coroot
ALTER TABLE spans DROP COLUMN ScopeName, DROP COLUMN ScopeVersion

-- another type: column Duration has the type "Int64", not UInt64; alter the column first
ALTER TABLE spans DROP INDEX idx_duration;
ALTER TABLE spans MODIFY COLUMN Duration Int64

-- JSON: tables with json: true cannot be adopted
RENAME TABLE spans TO maps;
CREATE TABLE spans ENGINE = MergeTree ORDER BY TraceId
AS SELECT * REPLACE (CAST('{}' AS JSON) AS ResourceAttributes) FROM maps

-- ReplacingMergeTree: engine ReplacingMergeTree
RENAME TABLE spans TO rows;
CREATE TABLE spans AS rows ENGINE = ReplacingMergeTree ORDER BY TraceState

-- a view: spans is a View without the column Timestamp, not a table of spans
RENAME TABLE spans TO rows;
CREATE VIEW spans AS SELECT 1 AS x

-- a Distributed table: --table rows
RENAME TABLE spans TO rows;
CREATE TABLE spans AS rows ENGINE = Distributed(two, currentDatabase(), rows)

-- an own table: spans_other is a MergeTree, not one of an adoption
CREATE TABLE spans_other AS spans

-- an own view: spans_all is a View, not one of an adoption
CREATE VIEW spans_all AS SELECT 1 AS x

-- ended halfway: spans_dropped is a MergeTree, not one that stays: an adoption was ended halfway
CREATE TABLE spans_dropped AS spans

-- a lookup view: spans_trace_id_ts is a View, not the exporter's lookup table with TraceId, Start and End; nothing was changed: rename it
CREATE VIEW spans_trace_id_ts AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM spans GROUP BY TraceId

-- a lookup table that keeps nothing: spans_trace_id_ts is a Null, not the exporter's lookup table with TraceId, Start and End; nothing was changed: rename it
CREATE TABLE spans_trace_id_ts (TraceId String, Start DateTime, End DateTime) ENGINE = Null

-- a lookup table with other columns: spans_trace_id_ts is a MergeTree, not the exporter's lookup table with TraceId, Start and End; nothing was changed: rename it
CREATE TABLE spans_trace_id_ts (TraceId String, start DateTime, end DateTime) ENGINE = MergeTree
ORDER BY TraceId

-- a materialized view in its place: spans_trace_id_ts is a MaterializedView, not the exporter's lookup table with TraceId, Start and End; nothing was changed: rename it
CREATE MATERIALIZED VIEW spans_trace_id_ts (TraceId String, Start DateTime, End DateTime)
ENGINE = MergeTree ORDER BY TraceId
AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM spans GROUP BY TraceId

-- a view that fills another table: spans_trace_id_ts_mv is a MaterializedView, not a materialized view that fills spans_trace_id_ts from spans
CREATE TABLE old_ts (TraceId String, Start DateTime, End DateTime) ENGINE = MergeTree
ORDER BY TraceId;
CREATE MATERIALIZED VIEW spans_trace_id_ts_mv TO old_ts
AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM spans GROUP BY TraceId;
CREATE TABLE spans_trace_id_ts AS old_ts

-- a view of another table: spans_trace_id_ts_mv is a MaterializedView, not a materialized view that fills spans_trace_id_ts from spans
CREATE TABLE spans_trace_id_ts (TraceId String, Start DateTime, End DateTime) ENGINE = MergeTree
ORDER BY TraceId;
CREATE TABLE others AS spans;
CREATE MATERIALIZED VIEW spans_trace_id_ts_mv TO spans_trace_id_ts
AS SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End FROM others GROUP BY TraceId

-- a table in place of the view: spans_trace_id_ts_mv is a Memory, not a materialized view
CREATE TABLE spans_trace_id_ts_mv (x UInt8) ENGINE = Memory

-- its own projection: spans has its own projection charts, other than that of create: give it another name
ALTER TABLE spans ADD PROJECTION charts (SELECT ServiceName, count() GROUP BY ServiceName)

-- its own index: spans has its own index idx_timestamp, other than that of create: give it another name
ALTER TABLE spans ADD INDEX idx_timestamp Timestamp TYPE set(100) GRANULARITY 4

-- another table: spans is a MergeTree without the column Timestamp, not a table of spans
RENAME TABLE spans TO rows;
CREATE TABLE spans (x UInt8) ENGINE = MergeTree ORDER BY x
