package clickhouse_test

// shapes are the columns that real tables have in addition to the exporter's, and their indexes and keys.
var shapes = map[string]struct{ columns, indexes, keys string }{
	// The exporter's main branch of August 2026, with full text search.
	"exporter, text indexes": {
		`, ResourceAttributeItems Array(String) ALIAS arrayMap(kv -> concat(kv.1, '=', kv.2), CAST(ResourceAttributes, 'Array(Tuple(String, String))')),
		SpanAttributeItems Array(String) ALIAS arrayMap(kv -> concat(kv.1, '=', kv.2), CAST(SpanAttributes, 'Array(Tuple(String, String))'))`,
		`INDEX idx_trace_id TraceId TYPE text(tokenizer = 'array'),
		INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE text(tokenizer = 'array'),
		INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE text(tokenizer = 'array'),
		INDEX idx_span_attr_items SpanAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_duration Duration TYPE minmax GRANULARITY 1,
		INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8`,
		"PARTITION BY toDate(Timestamp) PRIMARY KEY (ServiceName, SpanName, toDateTime(Timestamp)) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp), Timestamp)",
	},
	// ClickStack's, August 2026.
	"ClickStack": {
		`, "__hdx_materialized_rum.sessionId" String MATERIALIZED ResourceAttributes['rum.sessionId'] CODEC(ZSTD(1)),
		SampleRate UInt64 MATERIALIZED greatest(toUInt64OrZero(SpanAttributes['SampleRate']), 1) CODEC(T64, ZSTD(1)),
		ResourceAttributeItems Array(String) ALIAS arrayMap(arr -> concat(arr.1, '=', arr.2), ResourceAttributes::Array(Tuple(String, String)))`,
		`INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
		INDEX idx_rum_session_id "__hdx_materialized_rum.sessionId" TYPE bloom_filter(0.001) GRANULARITY 1,
		INDEX idx_res_attr_items ResourceAttributeItems TYPE text(tokenizer = 'array'),
		INDEX idx_lower_span_name lower(SpanName) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8`,
		"PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))",
	},
	"somebody's own columns": {
		`, Tenant LowCardinality(String) DEFAULT 'nobody', "odd ''name" Nullable(UInt8) COMMENT 'x'`,
		`INDEX tenants Tenant TYPE set(100) GRANULARITY 4`,
		"PARTITION BY toYear(Timestamp) ORDER BY (ServiceName, Timestamp)",
	},
	"no partitions, no order": {"", "INDEX idx_duration Duration TYPE minmax", "ORDER BY tuple()"},
}
