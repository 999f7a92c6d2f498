-- The tables of copies and ends of adoptions that were interrupted between DETACH and ATTACH.
SELECT 'an interrupted command has left the table ' || table || ' detached: run ATTACH TABLE `'
    || database || '`.`' || table || '`' || {on_cluster_text} || ', and then repeat it' AS problem
FROM {detached_everywhere}
WHERE database = {database} AND (table = {dropped_name} OR match(table, {scratch_names}))
