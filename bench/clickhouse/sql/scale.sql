-- Traces of 10 spans within half a second, of 25 services with 8 names; one trace in 1000 lasts
-- three hours. {rate} traces a day.
INSERT INTO spans (Timestamp, TraceId, SpanId, SpanName, ServiceName, Duration)
SELECT
    fromUnixTimestamp64Nano(ms * 1000000
        + toInt64(cityHash64(n, i, 1) % if(n % 1000 = 7, 10800000000000, 500000000))),
    if(h1 % 100 < {random},
        lower(hex(reinterpretAsFixedString(h1)) || hex(reinterpretAsFixedString(h2))),
        assumeNotNull(traceIDAt(fromUnixTimestamp64Milli(ms), 0, h2))),
    lower(hex(reinterpretAsFixedString(cityHash64(n, i, 2)))),
    concat('operation-', toString(h % 8)),
    concat('service-', toString(bitShiftRight(h, 8) % 25)),
    h % 100000000
FROM (
    SELECT number AS n, {start} + toInt64(intDiv(n * 86400000, {rate})) AS ms,
        cityHash64(n, 3) AS h1, cityHash64(n, 4) AS h2,
        arrayJoin(range(10)) AS i, cityHash64(n, i, 5) AS h
    FROM numbers({from}, {count})
)
SETTINGS max_partitions_per_insert_block = 0
