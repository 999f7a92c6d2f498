WITH {times}
SELECT {columns}
FROM {spans}
WHERE TraceId IN {ids:Array(String)}
    AND Timestamp BETWEEN times.1 AND times.2
ORDER BY TraceId, Timestamp, SpanId{settings}
