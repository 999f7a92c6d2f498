SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM {from}
WHERE TraceId != '' AND {outlier}
GROUP BY TraceId, {bucket}
