-- It holds the rows, and does not merge spans into one.
WITH extractGroups(engine_full, '^Distributed\\(\'[^\']*\', \'([^\']*)\', \'([^\']*)\'') AS of
SELECT name || if(notEmpty(of),
    ' only distributes to other tables: adopt the one that holds the rows, --database ' || of[1]
        || ' --table ' || of[2],
    ' has the engine ' || engine || ': only a MergeTree, replicated, shared or neither, can be '
        || 'adopted: others may merge spans into one') AS problem
FROM system.tables
WHERE database = {database} AND name = {live_name}
    AND engine NOT IN ('MergeTree', 'ReplicatedMergeTree', 'SharedMergeTree')
