CREATE TABLE source (
    Timestamp DateTime64(9), ms Int64, h1 UInt64, h2 UInt64,
    SpanId String, ParentSpanId String,
    SpanName LowCardinality(String), SpanKind LowCardinality(String),
    ServiceName LowCardinality(String),
    ResourceAttributes Map(LowCardinality(String), String),
    SpanAttributes Map(LowCardinality(String), String),
    Duration UInt64, StatusCode LowCardinality(String), StatusMessage String,
    Events Nested (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    )
) ENGINE = MergeTree ORDER BY tuple() SETTINGS default_compression_codec = 'LZ4'
