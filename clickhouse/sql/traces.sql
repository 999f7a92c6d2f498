WITH {times}
SELECT {columns}
FROM {spans}
WHERE TraceId IN {ids:Array(String)}
    AND (Timestamp BETWEEN times.1 AND times.2 OR times.3)
ORDER BY TraceId, Timestamp, SpanId{settings}
