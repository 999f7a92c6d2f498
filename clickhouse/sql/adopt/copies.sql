-- The spans of a partition, with the columns that are stored. In the time zone of a session, the
-- dates of the partitions would be others.
INSERT INTO {copy} ({columns})
SELECT {columns} FROM {other}
WHERE _partition_id = {partition}
SETTINGS insert_deduplicate = 0, insert_allow_materialized_columns = 1, session_timezone = ''
