-- The views that select from a table; own are those of the adoption.
WITH t.database = {database}
    AND t.name IN ({feed_name}, {history_name}, {history_times_name}) AS own
SELECT t.database || '.' || t.name AS name
FROM system.tables AS t
WHERE {which} AND match(as_select, '[^A-Za-z0-9_.-]`?' || regexpQuoteMeta({database})
    || '`?\\.`?' || {name} || '($|[^A-Za-z0-9_-])')
ORDER BY name
