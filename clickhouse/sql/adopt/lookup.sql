-- What the lookup table may lack of the last ten minutes.
INSERT INTO {lookup} (TraceId, Start, End)
SELECT TraceId, min(Timestamp), max(Timestamp)
FROM (SELECT TraceId, Timestamp FROM {live} UNION ALL SELECT TraceId, Timestamp FROM {other})
WHERE TraceId != '' AND Timestamp > now() - INTERVAL 10 MINUTE
GROUP BY TraceId
