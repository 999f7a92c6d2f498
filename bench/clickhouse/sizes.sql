SELECT * FROM (
SELECT 'disk' AS name, sum(bytes_on_disk) / 1e6 AS megabytes FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'spans'
UNION ALL
SELECT 'disk of the lookup table', sum(bytes_on_disk) / 1e6 FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'spans_trace_id_ts'
UNION ALL
SELECT 'keys in memory', sum(primary_key_bytes_in_memory) / 1e6 FROM (
    SELECT primary_key_bytes_in_memory FROM system.parts
    WHERE active AND database = currentDatabase() AND table = 'spans'
    UNION ALL
    SELECT primary_key_bytes_in_memory FROM system.projection_parts
    WHERE active AND database = currentDatabase() AND table = 'spans')
UNION ALL
SELECT 'marks in memory', value / 1e6 FROM system.metrics WHERE metric = 'MarkCacheBytes'
) ORDER BY name
