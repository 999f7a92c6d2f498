-- How many replicas the table has.
SELECT max(total_replicas) AS total
FROM system.replicas
WHERE database = {database} AND table = {live_name}
