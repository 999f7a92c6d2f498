-- Fails if two tables do not have equally many spans in a partition, or if spans of the second one
-- were changed since the first one was created: a move ends a mutation before it is done.
SELECT throwIf(sumIf(rows, table = {one}) != sumIf(rows, table = {two}) OR (
    SELECT count() FROM system.mutations
    WHERE database = {database} AND table = {two} AND (NOT is_done OR create_time >= (
        SELECT metadata_modification_time FROM system.tables
        WHERE database = {database} AND name = {one}))) > 0,
    {one} || ' and ' || {two} || ' do not have equally many spans, or spans are being changed')
FROM system.parts
WHERE active AND database = {database} AND table IN ({one}, {two}) AND partition_id = {partition}
