-- Whether the new table has the name on all servers, or the old one.
SELECT countIf((sorting_key = {our_key}) != {new}) = 0 AS done
FROM {tables_everywhere}
WHERE database = {database} AND name = {live_name}
