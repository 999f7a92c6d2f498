-- The exporter's lookup table: a row for each trace and inserted block. A lookup reads a granule of
-- each part: granules are small, and partitions are weeks.
# create {{.LookupRows}}
CREATE TABLE IF NOT EXISTS {{table .LookupRows}}{{.UUID}}{{.OnCluster}} (
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1))
) ENGINE = {{.Engine}}
PARTITION BY toMonday(Start)
PRIMARY KEY TraceId
ORDER BY (TraceId, Start){{with .TTL}}
TTL {{.}}{{end}}
SETTINGS index_granularity = 512, use_const_adaptive_granularity = 1, use_primary_key_cache = 1,
    min_compress_block_size = 8192, ttl_only_drop_parts = 1
# create {{.LookupView}}
CREATE MATERIALIZED VIEW IF NOT EXISTS {{table .LookupView}}{{.OnCluster}}
TO {{table .LookupRows}} AS
SELECT TraceId, min(Timestamp) AS Start, max(Timestamp) AS End
FROM {{table .Rows}}
WHERE TraceId != ''
GROUP BY TraceId
