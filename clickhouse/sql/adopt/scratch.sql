-- The tables of copies, also while a takeover has one of them detached.
SELECT name FROM {tables_everywhere} WHERE database = {database} AND match(name, {scratch_names})
UNION ALL
SELECT table AS name FROM {detached_everywhere}
WHERE database = {database} AND match(table, {scratch_names})
