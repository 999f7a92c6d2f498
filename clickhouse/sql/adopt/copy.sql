# {rows} spans of {partition} are copied to a table of their own, so that no materialized view gets
# them again. Then they leave {other_plain}, for a table of their own.
CREATE TABLE {copy}{uuid_copy} AS {live} ENGINE = {engine_copy} COMMENT {comment};
CREATE TABLE {copied}{uuid_copied} AS {other} ENGINE = {engine_copied} COMMENT {comment};
INSERT INTO {copy} ({stored})
SELECT {stored} FROM {other} WHERE _partition_id = {partition}
SETTINGS insert_deduplicate = 0, insert_allow_materialized_columns = 1, session_timezone = '';
{equal_before};
ALTER TABLE {other} MOVE PARTITION ID {partition} TO TABLE {copied};
{equal_after}
