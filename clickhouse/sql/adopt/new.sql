# The new table has the columns, indexes, constraints and projections of the old one, its TTL and
# its settings.
CREATE TABLE IF NOT EXISTS {{table .Other}}{{.UUID}}{{.OnCluster}} AS {{table .Spans}}
{{template "layout" .}}
COMMENT {{text .Comment}};
ALTER TABLE {{table .Other}}{{.OnCluster}}
    ADD INDEX IF NOT EXISTS idx_timestamp Timestamp TYPE minmax GRANULARITY 1,
    ADD PROJECTION IF NOT EXISTS {{template "charts"}}
