-- The row policies of two tables.
WITH names -> arrayStringConcat(arrayMap(name -> '`' || name || '`', names), ', ') AS list
SELECT
    short_name AS name,
    table,
    ifNull(select_filter, '1') AS filter,
    if(is_restrictive, 'RESTRICTIVE', 'PERMISSIVE') AS kind,
    multiIf(
        NOT apply_to_all, list(apply_to_list),
        empty(apply_to_except), 'ALL',
        'ALL EXCEPT ' || list(apply_to_except)) AS readers
FROM system.row_policies
WHERE database = {database} AND table IN ({names})
ORDER BY table, name
