-- The servers on which the old table has the name, and those on which the new one has it.
SELECT arrayStringConcat(groupArray(hostName()), ', ') AS hosts
FROM {tables_everywhere}
WHERE database = {database} AND name = {live_name}
GROUP BY sorting_key = {our_key} AS ours
ORDER BY ours
