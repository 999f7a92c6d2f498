-- A scalar subquery runs on the server that was asked: on a cluster the limit is that of all
-- shards.
WITH (SELECT groupArray(TraceId) FROM (
        SELECT DISTINCT TraceId FROM {lookup}
        WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')})
            AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}){page}
        ORDER BY TraceId DESC LIMIT {limit})) AS ids,
    {times}
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service,
    argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM {spans}
WHERE TraceId IN ids
    AND {within}
GROUP BY TraceId
ORDER BY TraceId DESC{settings}
