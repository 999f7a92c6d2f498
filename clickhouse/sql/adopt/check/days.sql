-- Days can move from one table to the other, which are on this server.
SELECT if({on_cluster_text} != '',
    'cannot copy on a cluster: run this on one server of each shard, without --cluster',
    {other_name} || ' is not partitioned like ' || {live_name}
        || ', so that no day can move: wait until its spans have expired') AS problem
FROM system.tables
WHERE database = {database} AND name IN ({live_name}, {other_name})
HAVING uniq(partition_key) > 1 OR {on_cluster_text} != ''
