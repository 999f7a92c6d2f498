# {rows} spans of {partition} are copied to a table of their own, so that no materialized view gets
# them again. Then they leave {other_plain}, for a table of their own.
CREATE TABLE {copied}{uuid_other} AS {other} ENGINE = {engine_other};
CREATE TABLE {copy}{uuid_live} AS {live} ENGINE = {engine_live};
SELECT throwIf(count() > 0, 'another copy is running or was interrupted: copy again')
FROM ({scratch}) WHERE NOT endsWith(name, {token});
INSERT INTO {copy} ({stored})
SELECT {stored} FROM {other} WHERE _partition_id = {partition}
SETTINGS insert_deduplicate = 0, insert_allow_materialized_columns = 1, session_timezone = '';
{equal_before};
ALTER TABLE {other} MOVE PARTITION ID {partition} TO TABLE {copied};
{equal_after};
# The copy of {partition} moves into {live_plain}, and the spans that were copied are dropped.
ALTER TABLE {copy} MOVE PARTITION ID {partition} TO TABLE {live};
DROP TABLE {copied}, {copy} SETTINGS max_table_size_to_drop = 0
