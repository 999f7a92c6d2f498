SELECT throwIf(toUInt32(splitByChar('.', version())[1]) * 100 + toUInt32(splitByChar('.', version())[2]) < 2509, concat('traceflake: the server is ClickHouse ', version(), ', which is too old: upgrade it to 25.9 or newer'));

SELECT throwIf(countIf(endsWith(engine, 'MergeTree')) = 0 OR (SELECT count() FROM system.columns WHERE database = 'otel' AND table = 'otel_traces' AND name = 'TraceId' AND type = 'String') = 0, 'traceflake: there is no table otel_traces with the exporter\'s column TraceId, of an engine like MergeTree: name the table that the Collector\'s exporter created')
FROM system.tables WHERE database = 'otel' AND name = 'otel_traces';

CREATE OR REPLACE FUNCTION traceIDTime AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       fromUnixTimestamp64Milli(toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 23)) + 1577836800000, 'UTC'),
       NULL);

CREATE OR REPLACE FUNCTION traceIDSeq AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       toUInt32(bitAnd(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 8388607)),
       NULL);

CREATE OR REPLACE FUNCTION traceIDLow AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       reinterpretAsUInt64(reverse(unhex(substring(id, 17, 16)))),
       NULL);

CREATE OR REPLACE FUNCTION traceIDMin AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitShiftLeft(toUInt64(least(greatest(
           toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000, 0), 2199023255551)), 23))))),
           '0000000000000000'));

CREATE OR REPLACE FUNCTION traceIDMax AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitOr(bitShiftLeft(toUInt64(least(greatest(
           toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000, 0), 2199023255551)), 23), 8388607))))),
           'ffffffffffffffff'));

CREATE OR REPLACE FUNCTION traceIDIsOurs AS (id, now, max_age, skew) ->
    ifNull(substring(id, 1, 16) != '0000000000000000' AND traceIDTime(id) >= toDateTime64(now, 9, 'UTC') - max_age
           AND traceIDTime(id) <= toDateTime64(now, 9, 'UTC') + skew, 0);

CREATE OR REPLACE FUNCTION traceIDNotBefore AS (id, slack) ->
    if(ifNull(traceIDTime(id) <= now64(3, 'UTC') + slack, 0), assumeNotNull(traceIDTime(id)) - slack, toDateTime64(0, 3, 'UTC'));

CREATE OR REPLACE FUNCTION traceIDAt AS (t, seq, low) ->
    if(ifNull(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')), 0) BETWEEN 1577836800000 AND 3776860055551,
       concat(lower(hex(reverse(reinterpretAsFixedString(greatest(bitOr(
           bitShiftLeft(toUInt64(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000), 23),
           bitAnd(toUInt64(seq), 8388607)), 1))))),
           lower(hex(reverse(reinterpretAsFixedString(toUInt64(low)))))),
       NULL);

ALTER TABLE `otel`.`otel_traces` ADD INDEX IF NOT EXISTS idx_trace_id_range TraceId TYPE minmax GRANULARITY 1 FIRST;
