-- A table, for its operator. Spans in the future are neither the newest nor the last to expire. An
-- ID is ordered if the span starts within an hour of the time in the ID, whose first 8 digits are
-- units of 512 ms since 2020, which is 1577836800000 ms since 1970.
WITH
    (SELECT count() FROM {{table .Of}}) AS spans,
    (SELECT count() FROM {{table .Of}} WHERE Timestamp > now() + INTERVAL 1 HOUR) AS future,
    (SELECT (count(), avg(abs(
        toInt64(byteSwap(reinterpretAsUInt32(unhex(substring(TraceId, 1, 8))))) * 512
            + 1577836800000 - toUnixTimestamp64Milli(Timestamp)) <= 3600000))
        FROM (SELECT Timestamp, TraceId FROM {{table .Of}}
            {{with .Partition}}WHERE _partition_id = {{text .}}{{end}} LIMIT 100000)) AS sampled,
    (SELECT (sum(rows), sum(bytes_on_disk),
        maxIf(delete_ttl_info_max, max_time <= now() + INTERVAL 1 HOUR))
        FROM system.parts
        WHERE active AND database = {{.Database}} AND table = {{text .Of}}) AS stored,
    extract(engine_full, '(?s) TTL (.*?)(?: SETTINGS .*)?$') AS ttl
SELECT fact.1 AS name, fact.2 AS value
FROM (SELECT arrayJoin([
    ('engine', engine),
    ('TTL', if(ttl = '', 'none', ttl)),
    ('spans', toString(greatest(spans, stored.1)) -- a row policy may hide some
        || if(stored.2 > 0, printf(', %.1f MiB', stored.2 / 1048576), '')
        || if(future > 0, '; ' || toString(future) || ' of them begin in the future', '')),
    ('ordered IDs', if(sampled.1 = 0, 'no spans', printf('%.1f %% of %d spans of the newest '
        || 'partition', 100 * sampled.2, sampled.1))),
    ('last expires', if(ttl = '' OR stored.3 = 0, 'never', printf('in %.1f days (%s)',
        (toUnixTimestamp(stored.3) - toUnixTimestamp(now())) / 86400,
        formatDateTime(stored.3, '%Y-%m-%dT%H:%i:%SZ', 'UTC'))))]) AS fact
    FROM system.tables WHERE database = {{.Database}} AND name = {{text .Of}})
