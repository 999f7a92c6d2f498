SELECT toString(max(total_replicas) AS replicas) FROM system.replicas
WHERE database = {{.Database}} AND table = {{text .Spans}}
HAVING replicas > 1
