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

-- a view: engine View
RENAME TABLE spans TO rows;
CREATE VIEW spans AS SELECT 1 AS x

-- a Distributed table: --table rows
RENAME TABLE spans TO rows;
CREATE TABLE spans AS rows ENGINE = Distributed(two, currentDatabase(), rows)

-- an own table: there is a table or view spans_other, which does not belong
CREATE TABLE spans_other AS spans

-- an own view: there is a table or view spans_all, which does not belong
CREATE VIEW spans_all AS SELECT 1 AS x

-- ended halfway: there is a table spans_dropped: an adoption was ended halfway
CREATE TABLE spans_dropped AS spans
