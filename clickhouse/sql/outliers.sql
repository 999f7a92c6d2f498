-- A row for each trace and four hours in which the trace has outliers, and that for each inserted
-- block. The times are rounded to seconds, before 1970 upwards. A lookup reads a granule of each part:
-- with partitions of a day its cost would grow with the days.
CREATE TABLE IF NOT EXISTS {outlier_rows}{on_cluster} (
    TraceId String CODEC(ZSTD(1)),
    Start DateTime64(0) CODEC(ZSTD(1)),
    End DateTime64(0) CODEC(ZSTD(1))
) ENGINE = {engine}
PARTITION BY toYYYYMM(Start)
ORDER BY (TraceId, Start){ttl}
SETTINGS index_granularity = 256, min_compress_block_size = 8192
