SELECT throwIf(countIf(engine = 'View') > 0 OR countIf(name = 'otel_traces') > 0 AND countIf(name != 'otel_traces') < 2, 'traceflake: table otel_traces has no lookup table otel_traces_trace_id_ts that a materialized view fills, so it cannot be kept')
FROM system.tables WHERE database = currentDatabase() AND name IN ('otel_traces', 'otel_traces_trace_id_ts', 'otel_traces_trace_id_ts_mv');

CREATE TABLE IF NOT EXISTS `otel_traces_trace_id_ts` (
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = MergeTree
PARTITION BY toDate(Start)
ORDER BY (TraceId, Start)
TTL toDateTime(Start) + toIntervalSecond(3600)
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS `otel_traces_trace_id_ts_mv` TO `otel_traces_trace_id_ts` AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM `otel_traces` WHERE TraceId != '' GROUP BY TraceId;
