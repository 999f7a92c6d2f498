-- The tables whose names begin with that of the spans table.
SELECT
    t.name AS name,
    toString(uuid) AS uuid,
    engine,
    engine_full AS full,
    create_table_query AS definition,
    sorting_key = {{text .Key}} AS ours,
    comment,
    columns,
    toString(p.rows) AS rows,
    newest
FROM system.tables AS t
LEFT JOIN (
    SELECT table, arrayMap(
        c -> map('name', c.2, 'type', c.3, 'kind', c.4),
        arraySort(groupArray((position, name, type, default_kind)))) AS columns
    FROM system.columns WHERE database = {{.Database}} GROUP BY table
) AS c ON c.table = t.name
LEFT JOIN ( -- spans in the future are not the newest
    SELECT table, sum(rows) AS rows, maxIf(partition_id, max_time <= now() + 3600) AS newest
    FROM system.parts WHERE active AND database = {{.Database}} GROUP BY table
) AS p ON p.table = t.name
WHERE database = {{.Database}} AND startsWith(t.name, {{text .Spans}})
ORDER BY name
