-- The grants of SELECT on tables.
SELECT
    table,
    ifNull(column, '') AS column,
    coalesce(user_name, role_name, '') AS reader,
    is_partial_revoke = 1 AS revoked
FROM system.grants
WHERE database = {database} AND table IN ({names}) AND toString(access_type) = 'SELECT'
ORDER BY table, reader, column
