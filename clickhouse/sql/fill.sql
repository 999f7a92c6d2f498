-- What the lookup table may lack. Rows that it has already do no harm.
INSERT INTO {times_rows} (TraceId, Start, End)
SELECT TraceId, min(Timestamp), max(Timestamp)
FROM {from}
WHERE TraceId != ''{which}
GROUP BY TraceId
SETTINGS max_partitions_per_insert_block = 0
