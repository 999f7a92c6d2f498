-- The grants of SELECT on some tables that their twins lack, as statements. A REVOKE of a part of
-- a larger grant is one, too.
WITH
    name -> '`' || replaceRegexpAll(name, '([`\\\\])', '\\\\\\1') || '`' AS quoted,
    readers AS (
        SELECT table, ifNull(column, '') AS column, coalesce(user_name, role_name, '') AS reader,
            is_partial_revoke = 1 AS revoked
        FROM system.grants
        WHERE database = {{.Database}} AND toString(access_type) = 'SELECT'),
    {{text .OnCluster}} || ' SELECT' || if(column = '', '', '(' || quoted(column) || ')') || ' ON '
        || quoted({{.Database}}) || '.' || quoted(twin.2) AS what
SELECT DISTINCT
    if(revoked, 'REVOKE' || what || ' FROM ', 'GRANT' || what || ' TO ') || quoted(reader) AS sql
FROM readers
JOIN (SELECT arrayJoin([
    ({{text .Spans}}, {{text .Other}}), ({{text .Spans}}, {{text .History}}),
    ({{text .Lookup}}, {{text .HistoryLookup}})]) AS twin) AS twins ON table = twin.1
WHERE (twin.2, column, reader, revoked) NOT IN (SELECT table, column, reader, revoked FROM readers)
ORDER BY ALL
