CREATE MATERIALIZED VIEW IF NOT EXISTS {feed}{on_cluster} TO {times_rows} AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM {rows}
WHERE TraceId != ''
GROUP BY TraceId{comment}
