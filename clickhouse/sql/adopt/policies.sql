-- The row policies of the table that the other one lacks, as statements.
WITH
    name -> '`' || replaceRegexpAll(name, '([`\\\\])', '\\\\\\1') || '`' AS quoted,
    names -> arrayStringConcat(arrayMap(quoted, names), ', ') AS list
SELECT
    'CREATE ROW POLICY IF NOT EXISTS ' || quoted(short_name) || {on_cluster_text} || ' ON '
        || {other_text} || ' FOR SELECT USING ' || ifNull(select_filter, '1')
        || ' AS ' || if(is_restrictive, 'RESTRICTIVE', 'PERMISSIVE') || ' TO ' || multiIf(
            NOT apply_to_all, list(apply_to_list),
            empty(apply_to_except), 'ALL',
            'ALL EXCEPT ' || list(apply_to_except)) AS sql
FROM system.row_policies
WHERE database = {database} AND table = {live_name} AND short_name NOT IN (
    SELECT short_name FROM system.row_policies
    WHERE database = {database} AND table = {other_name})
ORDER BY short_name
