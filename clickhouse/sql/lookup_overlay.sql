CREATE VIEW IF NOT EXISTS {lookup}{on_cluster} AS
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End
FROM {spans}
WHERE TraceId != ''
GROUP BY TraceId
SETTINGS use_skip_indexes_on_data_read = 0
