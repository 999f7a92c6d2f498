-- What the lookup table may lack. Rows that it has already do no harm.
INSERT INTO {{table .LookupRows}} (TraceId, Start, End)
SELECT TraceId, min(Timestamp), max(Timestamp)
FROM {{.From}}
WHERE TraceId != ''{{with .Where}}
    AND {{.}}{{end}}
GROUP BY TraceId
SETTINGS max_partitions_per_insert_block = 0
