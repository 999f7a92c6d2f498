-- The partitions of a table, the newest first; closed are those that nothing was stored in lately.
SELECT
    partition_id AS id,
    toString(sum(p.rows)) AS rows,
    max(modification_time) < now() - INTERVAL 10 MINUTE AS closed
FROM system.parts AS p
WHERE active AND database = {database} AND table = {other_name} AND p.rows > 0
GROUP BY id
ORDER BY id DESC
