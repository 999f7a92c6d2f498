-- How many spans meet a condition, 100,000 at most, and how many have their trace ID's time.
SELECT
    toString(count()) AS sampled,
    toString(countIf(abs(toUnixTimestamp64Milli(Timestamp) - 1577836800000 -
        toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(TraceId, 1, 16)))), 23)))
        < 86400000)) AS ordered
FROM (SELECT Timestamp, TraceId FROM {table} WHERE {condition} LIMIT 100000)
