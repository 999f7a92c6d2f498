CREATE MATERIALIZED VIEW IF NOT EXISTS {{table .LookupView}}{{.OnCluster}}
TO {{table .LookupRows}} AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM {{table .Rows}}
WHERE TraceId != ''
GROUP BY TraceId
