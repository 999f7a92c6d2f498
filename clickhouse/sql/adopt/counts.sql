-- How many spans a table has and how many begin in the future; and of 100,000 spans of its newest
-- partition, the share of those that start within an hour of the time in their trace ID. Its first
-- 8 digits are units of 512 ms since 2020, which is 1577836800000 ms since 1970.
SELECT
    toString((SELECT count() FROM {table})) AS rows,
    toString((SELECT count() FROM {table} WHERE Timestamp > now() + INTERVAL 1 HOUR)) AS future,
    toString(count()) AS sampled,
    ifNotFinite(avg(abs(
        toInt64(byteSwap(reinterpretAsUInt32(unhex(substring(TraceId, 1, 8))))) * 512
            + 1577836800000 - toUnixTimestamp64Milli(Timestamp)) <= 3600000), 0) AS ordered
FROM (SELECT Timestamp, TraceId FROM {table} WHERE {newest} LIMIT 100000)
