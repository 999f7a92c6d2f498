-- The row policies of the table that the other one lacks, as statements.
WITH
    name -> '`' || replaceRegexpAll(name, '([`\\\\])', '\\\\\\1') || '`' AS quoted,
    names -> arrayStringConcat(arrayMap(quoted, names), ', ') AS list
SELECT
    'CREATE ROW POLICY IF NOT EXISTS ' || quoted(short_name) || {{text .OnCluster}} || ' ON '
        || {{text (table .Other)}} || ' FOR SELECT USING ' || ifNull(select_filter, '1')
        || ' AS ' || if(is_restrictive, 'RESTRICTIVE', 'PERMISSIVE') || ' TO ' || multiIf(
            NOT apply_to_all, list(apply_to_list),
            empty(apply_to_except), 'ALL',
            'ALL EXCEPT ' || list(apply_to_except)) AS sql
FROM system.row_policies
WHERE database = {{.Database}} AND table = {{text .Spans}} AND short_name NOT IN (
    SELECT short_name FROM system.row_policies
    WHERE database = {{.Database}} AND table = {{text .Other}})
ORDER BY short_name
