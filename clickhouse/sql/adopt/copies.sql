-- The spans of a partition, with the columns that are stored.
INSERT INTO {copy} ({columns})
SELECT {columns} FROM {other}
WHERE _partition_id = {partition}
SETTINGS insert_deduplicate = 0, insert_allow_materialized_columns = 1
