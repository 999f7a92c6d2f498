-- The times of outliers are those of their table, so no bloom filter of theirs is read. Tools ask for
-- the start and then for the end of one trace. With its setting the second question takes the
-- granules from the query condition cache that the first one filled.
CREATE VIEW IF NOT EXISTS {lookup}{on_cluster} AS
SELECT TraceId, toDateTime(min(Start)) AS Start, toDateTime(max(End)) AS End
FROM (
    SELECT TraceId, Timestamp AS Start, Timestamp AS End FROM {spans} WHERE NOT {outlier}
    UNION ALL
    SELECT TraceId, Start, End FROM {outliers})
WHERE TraceId != ''
GROUP BY TraceId
SETTINGS use_skip_indexes_on_data_read = 0
