-- A row for each trace and four hours in which the trace has outliers, and that for each inserted
-- block. Few rows are read of each part: a lookup asks for one trace.
CREATE TABLE IF NOT EXISTS {outlier_rows}{on_cluster} (
    TraceId String CODEC(ZSTD(1)),
    Start DateTime64(9) CODEC(ZSTD(1)),
    End DateTime64(9) CODEC(ZSTD(1))
) ENGINE = {engine}
PARTITION BY toDate(Start)
ORDER BY (TraceId, Start){ttl}
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1
