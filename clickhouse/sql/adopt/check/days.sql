-- Days can move from one table to the other, which are on this server, and a takeover can rename
-- two tables at once, unlike in replicated and shared databases.
WITH (SELECT engine FROM system.databases WHERE name = {database}) AS kept_by
SELECT multiIf(
    {on_cluster_text} != '',
    'cannot copy on a cluster: run this on one server of each shard, without --cluster',
    kept_by != 'Atomic', 'cannot copy in a database with the engine ' || kept_by
        || ', only in an Atomic one: wait until the spans have expired',
    {other_name} || ' is not partitioned like ' || {live_name}
        || ', so that no day can move: wait until its spans have expired') AS problem
FROM system.tables
WHERE database = {database} AND name IN ({live_name}, {other_name})
HAVING uniq(partition_key) > 1 OR kept_by != 'Atomic' OR {on_cluster_text} != ''
