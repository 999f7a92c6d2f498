# The interrupted copy of {partition} ends. Its tables get new names, so that its operator cannot
# continue, and are detached, which waits until no statement uses them. Unless the copy is in its
# place, the spans return.
RENAME TABLE IF EXISTS {copied} TO {to_copied}, IF EXISTS {copy} TO {to_copy};
CREATE TABLE IF NOT EXISTS {to_copied}{uuid_other} AS {other} ENGINE = {engine_other};
CREATE TABLE IF NOT EXISTS {to_copy}{uuid_live} AS {live} ENGINE = {engine_live};
DETACH TABLE {to_copied} PERMANENTLY SYNC;
ATTACH TABLE {to_copied};
DETACH TABLE {to_copy} PERMANENTLY SYNC;
ATTACH TABLE {to_copy};
SELECT throwIf((sumIf(rows, table = {to_copied_name}) > 0 AND sumIf(rows, table = {to_copy_name})
    = 0) != {placed}, 'the copy continued meanwhile: copy again')
FROM system.parts
WHERE active AND database = {database} AND table IN ({to_copied_name}, {to_copy_name});
{return}DROP TABLE {to_copied}, {to_copy} SETTINGS max_table_size_to_drop = 0
