-- No other object has a name of an adoption.
WITH (
    SELECT (sorting_key != {our_key}, engine)
    FROM system.tables WHERE database = {database} AND name = {live_name}) AS twin
SELECT if(name = {dropped_name},
    'there is a table ' || name || ': an adoption was ended halfway, so drop it or rename it back',
    'there is a table or view ' || name || ', which does not belong to an adoption of '
        || {live_name} || ': rename or drop it') AS problem
FROM system.tables
WHERE database = {database} AND (name = {dropped_name}
    OR name = {other_name} AND (sorting_key = {our_key}, engine) != twin
    OR name IN ({history_name}, {history_times_name}, {trial_a_name}, {trial_b_name})
        AND comment != {comment})
