SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM {spans}
WHERE {where}
ORDER BY Timestamp DESC LIMIT {limit} WITH TIES
