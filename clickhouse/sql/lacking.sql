-- The days with spans whose traces the lookup table lacks, of at most some thousand spans. Spans of
-- the last minute may be on their way into it. If spans expire, its rows of the first day may have
-- expired before.
WITH sample AS (
    SELECT toDate(Timestamp) AS date, TraceId FROM {{table .Of}}
    WHERE _part_offset % {{.Step}} = 0 AND TraceId != ''
        AND Timestamp < now() - INTERVAL 1 MINUTE)
SELECT toString(date) AS day FROM sample
WHERE TraceId NOT IN (
    SELECT TraceId FROM {{table .LookupRows}} WHERE TraceId IN (SELECT TraceId FROM sample))
    {{if .TTL}}AND date > (SELECT min(date) FROM sample){{end}}
GROUP BY date
ORDER BY date
