-- The views that select from a table.
SELECT t.database || '.' || t.name AS name
FROM system.tables AS t
WHERE match(as_select, '[^A-Za-z0-9_.-]`?' || regexpQuoteMeta({database})
    || '`?\\.`?' || {name} || '($|[^A-Za-z0-9_-])')
ORDER BY name
