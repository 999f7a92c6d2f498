-- The tables whose names begin with that of the spans table.
SELECT
    t.name AS name,
    toString(uuid) AS uuid,
    engine,
    engine_full AS full,
    create_table_query AS definition,
    sorting_key,
    comment,
    sorting_key = {our_key} AS ours,
    columns,
    toString(p.rows) AS rows,
    newest
FROM system.tables AS t
LEFT JOIN (
    SELECT table, arrayMap(
        c -> map('name', c.2, 'type', c.3, 'kind', c.4, 'comment', c.5),
        arraySort(groupArray((position, name, type, default_kind, comment)))) AS columns
    FROM system.columns WHERE database = {database} GROUP BY table
) AS c ON c.table = t.name
LEFT JOIN ( -- spans in the future are not the newest
    SELECT table, sum(rows) AS rows, maxIf(partition_id, max_time <= now() + 3600) AS newest
    FROM {parts_of_shards} WHERE active AND database = {database} GROUP BY table
) AS p ON p.table = t.name
WHERE database = {database} AND startsWith(t.name, {spans_name})
ORDER BY name
