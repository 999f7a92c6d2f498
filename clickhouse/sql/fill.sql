-- What the lookup table may lack. Rows that it already has do no harm. Within a second, inserts end
-- that the materialized view did not see.
# {{.LookupRows}}: add {{.Traces}}
{{- if .Cluster}} of this server's shard: run the INSERT on one server of each other shard, too
{{- end}}
SELECT sleep(1);
INSERT INTO {{table .LookupRows}} (TraceId, Start, End)
SELECT TraceId, min(Timestamp), max(Timestamp)
FROM (SELECT TraceId, Timestamp FROM {{table .Rows}}{{if .Both}}
    UNION ALL SELECT TraceId, Timestamp FROM {{table .Other}}{{end}})
WHERE TraceId != ''{{with .Where}}
    AND {{.}}{{end}}
GROUP BY TraceId
SETTINGS max_partitions_per_insert_block = 0
