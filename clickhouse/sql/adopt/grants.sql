-- The grants of SELECT on some tables that their twins lack, as statements.
WITH
    name -> '`' || replaceRegexpAll(name, '([`\\\\])', '\\\\\\1') || '`' AS quoted,
    readers AS (
        SELECT table, ifNull(column, '') AS column, coalesce(user_name, role_name, '') AS reader,
            is_partial_revoke = 1 AS revoked
        FROM system.grants
        WHERE database = {database} AND toString(access_type) = 'SELECT'),
    {on_cluster_text} || ' SELECT' || if(column = '', '', '(' || quoted(column) || ')') || ' ON '
        || quoted({database}) || '.' || quoted(twin.2) AS what
SELECT DISTINCT
    if(revoked, '', 'GRANT' || what || ' TO ' || quoted(reader)) AS sql,
    if(revoked, '', 'REVOKE' || what || ' FROM ' || quoted(reader)) AS undo,
    if(revoked, 'the REVOKE of SELECT on ' || table || ' from ' || reader || ' is not carried over',
        '') AS note
FROM readers
JOIN (SELECT arrayJoin([
    ({live_name}, {other_name}), ({live_name}, {history_name}),
    ({lookup_name}, {history_times_name})]) AS twin) AS twins ON table = twin.1
WHERE revoked OR (twin.2, column, reader) NOT IN (
    SELECT table, column, reader FROM readers WHERE NOT revoked)
ORDER BY ALL
