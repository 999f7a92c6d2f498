-- The exporter's columns and indexes, in the order of traces.
-- The primary key has no Timestamp: a condition on it would use that column alone, not the bucket.
CREATE TABLE IF NOT EXISTS {{table .Rows}}{{.OnCluster}} (
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(3)),
    TraceId String CODEC(ZSTD(3)),
    SpanId String CODEC(ZSTD(3)),
    ParentSpanId String CODEC(ZSTD(3)),
    TraceState String CODEC(ZSTD(3)),
    SpanName LowCardinality(String) CODEC(ZSTD(3)),
    SpanKind LowCardinality(String) CODEC(ZSTD(3)),
    ServiceName LowCardinality(String) CODEC(ZSTD(3)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(3)),
    ScopeName String CODEC(ZSTD(3)),
    ScopeVersion String CODEC(ZSTD(3)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(3)),
    Duration UInt64 CODEC(ZSTD(3)),
    StatusCode LowCardinality(String) CODEC(ZSTD(3)),
    StatusMessage String CODEC(ZSTD(3)),
    `Events.Timestamp` Array(DateTime64(9)) CODEC(ZSTD(3)),
    `Events.Name` Array(LowCardinality(String)) CODEC(ZSTD(3)),
    `Events.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(3)),
    `Links.TraceId` Array(String) CODEC(ZSTD(3)),
    `Links.SpanId` Array(String) CODEC(ZSTD(3)),
    `Links.TraceState` Array(String) CODEC(ZSTD(3)),
    `Links.Attributes` Array(Map(LowCardinality(String), String)) CODEC(ZSTD(3)),
    INDEX idx_timestamp Timestamp TYPE minmax GRANULARITY 1,
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_res_attr_value mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_duration Duration TYPE minmax GRANULARITY 1{{with .Projection}},
    {{.}}{{end}}
) ENGINE = {{.Engine}}
PARTITION BY toDate(Timestamp)
PRIMARY KEY (toStartOfFiveMinutes(Timestamp), TraceId)
ORDER BY (toStartOfFiveMinutes(Timestamp){{if .Newest}} DESC{{end}}, TraceId, Timestamp)
{{- with .TTL}}
TTL {{.}}
{{- end}}
SETTINGS {{.Settings}}
