-- How many parts the index is still to be built for on all servers, and why that fails.
SELECT toString(sum(parts_to_do)) AS left,
    anyIf(latest_fail_reason, latest_fail_reason != '') AS reason
FROM {mutations_everywhere}
WHERE database = {database} AND table = {table} AND NOT is_done
    AND command LIKE '%MATERIALIZE INDEX idx_trace_id_range%'
