-- The servers on which the old table has the name, and those on which the new one has it.
WITH
    sorting_key = {our_key} AS ours,
    arrayStringConcat(groupArrayIf(hostName(), NOT ours), ', ') AS old,
    arrayStringConcat(groupArrayIf(hostName(), ours), ', ') AS new
SELECT {live_name} || ' is the old table on ' || old || ' and the new one on ' || new
    || ': run EXCHANGE TABLES there by hand, without ON CLUSTER, until all agree' AS problem
FROM {tables_everywhere}
WHERE database = {database} AND name = {live_name}
HAVING uniq(ours) > 1
