-- Without ON CLUSTER, only one of the replicas would exchange its tables.
SELECT {live_name} || ' has ' || toString(max(total_replicas)) || ' replicas: name their cluster '
    || 'with --cluster, so that all of them exchange it' AS problem
FROM system.replicas
WHERE database = {database} AND table = {live_name} AND {on_cluster_text} = '' AND (
    SELECT engine FROM system.databases WHERE name = {database}) = 'Atomic'
HAVING max(total_replicas) > 1
