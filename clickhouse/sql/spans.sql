-- The exporter's columns, and the indexes.
CREATE TABLE IF NOT EXISTS {table}{on_cluster} (
    Timestamp DateTime64(9) CODEC(T64, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)){wide},
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)){wide},
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1, 20)),
    Duration UInt64 CODEC(T64, ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    `Events.Timestamp` Array(DateTime64(9)) CODEC(ZSTD(1)){wide},
    `Events.Name` Array(LowCardinality(String)) CODEC(ZSTD(1)){wide},
    `Events.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)){wide},
    `Links.TraceId` Array(String) CODEC(ZSTD(1)){wide},
    `Links.SpanId` Array(String) CODEC(ZSTD(1)){wide},
    `Links.TraceState` Array(String) CODEC(ZSTD(1)){wide},
    `Links.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(1)){wide},
    INDEX idx_timestamp Timestamp TYPE minmax GRANULARITY 1,
    INDEX idx_trace_id_range TraceId TYPE minmax GRANULARITY 1,
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.005) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 8,
    INDEX idx_res_attr_value mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 8,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 8,
    INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 8{elements}
) ENGINE = {engine}
PARTITION BY toDate(Timestamp)
PRIMARY KEY ({primary_key})
ORDER BY ({sorting_key}){ttl}
SETTINGS {settings}{comment}
