-- GLOBAL, so that on a cluster the limit is that of all shards together.
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service,
    argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM {spans}
WHERE TraceId GLOBAL IN (
        SELECT DISTINCT TraceId FROM {spans}
        WHERE {ids}
            AND {near}
        ORDER BY TraceId DESC LIMIT {limit}){times}
GROUP BY TraceId
ORDER BY TraceId DESC{settings}
