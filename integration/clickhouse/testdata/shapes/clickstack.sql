-- ClickStack's, August 2026, and somebody's own columns: columns in addition to the exporter's,
-- indexes, keys.
, "__hdx_materialized_rum.sessionId" String MATERIALIZED ResourceAttributes['rum.sessionId']
    CODEC(ZSTD(1)),
SampleRate UInt64 MATERIALIZED greatest(toUInt64OrZero(SpanAttributes['SampleRate']), 1)
    CODEC(T64, ZSTD(1)),
ResourceAttributeItems Array(String) ALIAS arrayMap(arr -> concat(arr.1, '=', arr.2),
    ResourceAttributes::Array(Tuple(String, String))),
Tenant LowCardinality(String) DEFAULT 'nobody', "odd ''name" Nullable(UInt8) COMMENT 'x',
"Duration in `ms`, (rounded)" UInt64 ALIAS intDiv(Duration, 1000000),
Given String EPHEMERAL;
INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
INDEX idx_rum_session_id "__hdx_materialized_rum.sessionId" TYPE bloom_filter(0.001)
    GRANULARITY 1,
INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8,
INDEX tenants Tenant TYPE set(100) GRANULARITY 4;
PARTITION BY toYear(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
