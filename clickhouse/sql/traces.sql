SELECT {columns}
FROM {spans}
WHERE TraceId IN {ids:Array(String)}
ORDER BY TraceId, Timestamp, SpanId{settings}
