-- Before a swap, both tables have the same TTL.
WITH extract(engine_full, '(?s) TTL (.*?)(?: SETTINGS .*)?$') AS ttl
SELECT 'the TTL of ' || {live_name} || ' is "' || anyIf(ttl, name = {live_name})
    || '" and that of ' || {other_name} || ' is "' || anyIf(ttl, name = {other_name})
    || '": set the same on both' AS problem
FROM system.tables
WHERE database = {database} AND name IN ({live_name}, {other_name}) AND {phase} = 'prepared'
HAVING uniq(ttl) > 1
