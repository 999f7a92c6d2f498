# The new table has the columns, indexes, constraints and projections of the old one, its TTL and
# its settings.
CREATE TABLE IF NOT EXISTS {other}{uuid}{on_cluster} AS {live}
ENGINE = {engine}
PARTITION BY toDate(Timestamp)
PRIMARY KEY ({bucket}, TraceId)
ORDER BY ({bucket}{desc}, TraceId, Timestamp){ttl}
SETTINGS {settings}
COMMENT {live_comment};
ALTER TABLE {other}{on_cluster}
    ADD INDEX IF NOT EXISTS idx_timestamp Timestamp TYPE minmax GRANULARITY 1{projection}
