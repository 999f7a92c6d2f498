-- A table of ours has what `create` adds, and the server has the functions. An adopted table has
-- other indexes only if the old one had them.
SELECT {live_name} || ' lacks ' || arrayStringConcat(groupArray(part), ', ')
    || ': `create` adds what is missing' AS problem
FROM (
    SELECT 'the column ' || arrayJoin([{column_names}]) AS part
    UNION ALL
    SELECT 'the index ' || arrayJoin(['idx_timestamp', 'idx_trace_id'])
    UNION ALL
    SELECT 'the function ' || arrayJoin([{function_names}]))
WHERE {phase} = 'finished' AND part NOT IN (
    SELECT 'the column ' || name FROM system.columns
    WHERE database = {database} AND table = {live_name}
    UNION ALL
    SELECT 'the index ' || name FROM system.data_skipping_indices
    WHERE database = {database} AND table = {live_name}
    UNION ALL
    SELECT 'the function ' || name FROM system.functions WHERE origin = 'SQLUserDefined')
HAVING count() > 0
