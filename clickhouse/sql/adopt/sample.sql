-- How many of the spans of a condition there are, 100,000 at most, and how many have the time of their trace ID.
SELECT
    toString(count()) AS sampled,
    toString(countIf(abs(toUnixTimestamp64Milli(Timestamp) - 1577836800000 -
        toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(TraceId, 1, 16)))), 23))) < 86400000)) AS ordered
FROM (SELECT Timestamp, TraceId FROM {table} WHERE {condition} LIMIT 100000)
