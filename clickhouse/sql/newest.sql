WITH {steps}
    {times}
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service,
    argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM {spans}
WHERE TraceId IN (SELECT arrayJoin({page}))
    AND (Timestamp BETWEEN times.1 AND times.2 OR times.3)
GROUP BY TraceId
ORDER BY Start DESC, TraceId DESC{settings}
