-- The days with spans whose traces the lookup table lacks, of at most some thousand spans, which
-- are read once: somebody may exchange the tables meanwhile. Spans of the last minute may be on
-- their way into the lookup table, and rows of spans that expire within a day may have left it.
WITH (
    SELECT groupUniqArray((toDate(Timestamp), TraceId)) FROM {{table .Of}}
    WHERE _part_offset % {{.Step}} = 0 AND TraceId != ''
        AND Timestamp < now() - INTERVAL 1 MINUTE{{with .TTL}}
        AND {{.}} > now() + INTERVAL 1 DAY{{end}}) AS sample
SELECT toString(span.1) AS day FROM (SELECT arrayJoin(sample) AS span)
WHERE span.2 NOT IN (
    SELECT TraceId FROM {{table .LookupRows}} WHERE TraceId IN (SELECT arrayJoin(sample.2)))
GROUP BY day
ORDER BY day
