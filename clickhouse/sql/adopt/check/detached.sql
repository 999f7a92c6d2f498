-- The tables of copies and ends of adoptions that were interrupted between DETACH and ATTACH.
SELECT 'a command that is running or was interrupted has detached the table ' || table
    || ': if it is not running, run ATTACH TABLE `' || database || '`.`' || table || '`'
    || {on_cluster_text} || ', and then repeat it' AS problem
FROM {detached_everywhere}
WHERE database = {database} AND (table = {dropped_name} OR match(table, {scratch_names}))
