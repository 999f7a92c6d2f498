-- After a RENAME, materialized views get no spans until they are attached again (ClickHouse 26.5
-- and 26.7).
WITH
    arrayJoin(arrayZip(dependencies_database, dependencies_table)) AS view,
    arrayJoin(['DETACH', 'ATTACH']) AS verb
SELECT verb || ' TABLE `' || view.1 || '`.`' || view.2 || '`' || {on_cluster_text} AS sql
FROM system.tables
WHERE database = {database} AND name = {live_name}
ORDER BY view, verb DESC
