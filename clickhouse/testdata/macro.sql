SELECT throwIf(toUInt32(splitByChar('.', version())[1]) * 100 + toUInt32(splitByChar('.', version())[2]) < 2509, concat('traceflake: the server is ClickHouse ', version(), ', which is too old: upgrade it to 25.9 or newer'));

SELECT throwIf(countIf(NOT (sorting_key = 'toStartOfInterval(Timestamp, toIntervalHour(4), \'UTC\'), ServiceName, SpanName, TraceId, Timestamp')) > 0 OR count() > 0 AND (SELECT countIf((name, type) IN (('Timestamp', 'DateTime64(9)'), ('TraceId', 'String'), ('SpanId', 'String'), ('ParentSpanId', 'String'), ('TraceState', 'String'), ('SpanName', 'LowCardinality(String)'), ('SpanKind', 'LowCardinality(String)'), ('ServiceName', 'LowCardinality(String)'), ('ResourceAttributes', 'Map(LowCardinality(String), String)'), ('ScopeName', 'String'), ('ScopeVersion', 'String'), ('SpanAttributes', 'Map(LowCardinality(String), String)'), ('Duration', 'UInt64'), ('StatusCode', 'LowCardinality(String)'), ('StatusMessage', 'String'), ('Events.Timestamp', 'Array(DateTime64(9))'), ('Events.Name', 'Array(LowCardinality(String))'), ('Events.Attributes', 'Array(Map(LowCardinality(String), String))'), ('Links.TraceId', 'Array(String)'), ('Links.SpanId', 'Array(String)'), ('Links.TraceState', 'Array(String)'), ('Links.Attributes', 'Array(Map(LowCardinality(String), String))'))) FROM system.columns WHERE database = 'otel' AND table = 'otel_traces_local') != 22, 'traceflake: table otel_traces_local has another shape and was left as it is: adopt it or choose another name')
FROM system.tables WHERE database = 'otel' AND name = 'otel_traces_local';

SELECT throwIf(countIf(NOT (engine = 'Distributed' AND match(create_table_query, '[^A-Za-z0-9_-]otel_traces_local[^A-Za-z0-9_-]'))) > 0 OR count() > 0 AND (SELECT countIf((name, type) IN (('Timestamp', 'DateTime64(9)'), ('TraceId', 'String'), ('SpanId', 'String'), ('ParentSpanId', 'String'), ('TraceState', 'String'), ('SpanName', 'LowCardinality(String)'), ('SpanKind', 'LowCardinality(String)'), ('ServiceName', 'LowCardinality(String)'), ('ResourceAttributes', 'Map(LowCardinality(String), String)'), ('ScopeName', 'String'), ('ScopeVersion', 'String'), ('SpanAttributes', 'Map(LowCardinality(String), String)'), ('Duration', 'UInt64'), ('StatusCode', 'LowCardinality(String)'), ('StatusMessage', 'String'), ('Events.Timestamp', 'Array(DateTime64(9))'), ('Events.Name', 'Array(LowCardinality(String))'), ('Events.Attributes', 'Array(Map(LowCardinality(String), String))'), ('Links.TraceId', 'Array(String)'), ('Links.SpanId', 'Array(String)'), ('Links.TraceState', 'Array(String)'), ('Links.Attributes', 'Array(Map(LowCardinality(String), String))'))) FROM system.columns WHERE database = 'otel' AND table = 'otel_traces') != 22, 'traceflake: table otel_traces is not Distributed over otel_traces_local and was left as it is: adopt it or choose another name')
FROM system.tables WHERE database = 'otel' AND name = 'otel_traces';

SELECT throwIf(count() > 0, 'traceflake: table otel_traces_trace_id_ts or otel_traces_trace_id_ts_mv is in the way of a view of that name: keep the lookup table, or drop it')
FROM system.tables WHERE database = 'otel' AND name IN ('otel_traces_trace_id_ts', 'otel_traces_trace_id_ts_mv') AND (engine != 'View' OR NOT match(as_select, 'TraceId.*Start.*End'));

CREATE OR REPLACE FUNCTION traceIDTime ON CLUSTER '{cluster}' AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       fromUnixTimestamp64Milli(toInt64(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 23)) + 1577836800000, 'UTC'),
       NULL);

CREATE OR REPLACE FUNCTION traceIDSeq ON CLUSTER '{cluster}' AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       toUInt32(bitAnd(reinterpretAsUInt64(reverse(unhex(substring(id, 1, 16)))), 8388607)),
       NULL);

CREATE OR REPLACE FUNCTION traceIDLow ON CLUSTER '{cluster}' AS (id) ->
    if(match(id, '^[0-9a-f]{32}$'),
       reinterpretAsUInt64(reverse(unhex(substring(id, 17, 16)))),
       NULL);

CREATE OR REPLACE FUNCTION traceIDMin ON CLUSTER '{cluster}' AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitShiftLeft(toUInt64(least(greatest(
           toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000, 0), 2199023255551)), 23))))),
           '0000000000000000'));

CREATE OR REPLACE FUNCTION traceIDMax ON CLUSTER '{cluster}' AS (t) ->
    if(isNull(t), NULL,
       concat(lower(hex(reverse(reinterpretAsFixedString(bitOr(bitShiftLeft(toUInt64(least(greatest(
           toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000, 0), 2199023255551)), 23), 8388607))))),
           'ffffffffffffffff'));

CREATE OR REPLACE FUNCTION traceIDIsOurs ON CLUSTER '{cluster}' AS (id, now, max_age, skew) ->
    ifNull(substring(id, 1, 16) != '0000000000000000' AND traceIDTime(id) >= toDateTime64(now, 9, 'UTC') - max_age
           AND traceIDTime(id) <= toDateTime64(now, 9, 'UTC') + skew, 0);

CREATE OR REPLACE FUNCTION traceIDNotBefore ON CLUSTER '{cluster}' AS (id, slack) ->
    if(ifNull(traceIDTime(id) <= now64(3, 'UTC') + slack, 0), assumeNotNull(traceIDTime(id)) - slack, toDateTime64(0, 3, 'UTC'));

CREATE OR REPLACE FUNCTION traceIDAt ON CLUSTER '{cluster}' AS (t, seq, low) ->
    if(ifNull(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')), 0) BETWEEN 1577836800000 AND 3776860055551,
       concat(lower(hex(reverse(reinterpretAsFixedString(greatest(bitOr(
           bitShiftLeft(toUInt64(toUnixTimestamp64Milli(toDateTime64(t, 3, 'UTC')) - 1577836800000), 23),
           bitAnd(toUInt64(seq), 8388607)), 1))))),
           lower(hex(reverse(reinterpretAsFixedString(toUInt64(low)))))),
       NULL);

CREATE TABLE IF NOT EXISTS `otel`.`otel_traces_local` ON CLUSTER '{cluster}' (
    Timestamp DateTime64(9) CODEC(T64, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1, 20)) SETTINGS (min_compress_block_size = 262144, max_compress_block_size = 1048576),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1, 20)),
    Duration UInt64 CODEC(T64, ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    INDEX idx_timestamp Timestamp TYPE minmax GRANULARITY 1,
    INDEX idx_trace_id_range TraceId TYPE minmax GRANULARITY 1,
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 16,
    INDEX idx_res_attr_value mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 16,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 16,
    INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 16
) ENGINE = ReplicatedMergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC'), ServiceName, SpanName, TraceId, Timestamp)
SETTINGS index_granularity = 512, min_compress_block_size = 16384, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS `otel`.`otel_traces` ON CLUSTER '{cluster}' AS `otel`.`otel_traces_local`
ENGINE = Distributed('{cluster}', `otel`, `otel_traces_local`, reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16)))));

CREATE VIEW IF NOT EXISTS `otel`.`otel_traces_trace_id_ts` ON CLUSTER '{cluster}' AS
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End
FROM `otel`.`otel_traces` WHERE TraceId != '' GROUP BY TraceId
SETTINGS use_skip_indexes_on_data_read = 0;

CREATE VIEW IF NOT EXISTS `otel`.`otel_traces_trace_id_ts_mv` ON CLUSTER '{cluster}' AS
SELECT TraceId, Start, End FROM `otel`.`otel_traces_trace_id_ts`;
