DROP VIEW IF EXISTS {history_times}{on_cluster};
DROP VIEW IF EXISTS {history}{on_cluster};
RENAME TABLE IF EXISTS {other} TO {dropped}{on_cluster};
DETACH TABLE IF EXISTS {dropped}{on_cluster} PERMANENTLY SYNC;
ATTACH TABLE IF NOT EXISTS {dropped}{on_cluster};
SELECT throwIf(count() > 0, 'another operator exchanged the tables: rename it back')
FROM {tables_everywhere}
WHERE database = {database} AND name = {dropped_name} AND (sorting_key = {our_key}) != {drops_new};
SELECT throwIf(count() > 0, 'a copy is running or was interrupted: rename it back, and copy again')
FROM ({scratch});
SELECT throwIf(count() > 0, 'it has spans: leave this statement out to drop them')
FROM {parts_everywhere}
WHERE active AND rows > 0 AND database = {database} AND table = {dropped_name};
DROP TABLE IF EXISTS {dropped}{on_cluster} SETTINGS max_table_size_to_drop = 0
