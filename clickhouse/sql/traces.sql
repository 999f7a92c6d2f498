WITH {times}
SELECT {columns}
FROM {spans}
WHERE TraceId IN {ids:Array(String)}
    AND {within}
ORDER BY TraceId, Timestamp, SpanId{settings}
