-- The table exists.
SELECT 'there is no table ' || {live_name} || ' in database ' || {database} || ': name the table '
    || 'of the Collector\'s exporter, or create one with create' AS problem
FROM system.tables WHERE database = {database} AND name = {live_name}
HAVING count() = 0
