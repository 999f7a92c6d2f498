-- The views that select from a table.
SELECT database || '.' || name AS name, engine
FROM system.tables
WHERE match(as_select, {pattern})
ORDER BY name
