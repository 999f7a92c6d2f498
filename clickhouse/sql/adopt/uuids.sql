-- The UUIDs of a table, which may differ between the servers.
SELECT DISTINCT toString(uuid) AS uuid
FROM {tables_everywhere}
WHERE database = {database} AND name = {name} AND sorting_key = {key}
ORDER BY uuid
