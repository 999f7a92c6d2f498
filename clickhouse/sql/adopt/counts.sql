-- How many spans a table has and how many begin in the future; and of its newest partition, how
-- many of 100,000 spans have their trace ID's time.
SELECT
    toString((SELECT count() FROM {table})) AS rows,
    toString((SELECT count() FROM {table} WHERE Timestamp > now() + INTERVAL 1 HOUR)) AS future,
    toString(count()) AS sampled,
    toString(countIf(abs(toUnixTimestamp64Milli(Timestamp) - 1577836800000 -
        toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(TraceId, 1, 16)))), 23)))
        < 86400000)) AS ordered
FROM (SELECT Timestamp, TraceId FROM {table} WHERE {newest} LIMIT 100000)
