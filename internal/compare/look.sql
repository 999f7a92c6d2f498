-- A table, its engine without replication and TTL, its newest spans, the space on its disks, and
-- the tables that earlier comparisons left.
SELECT t.db, t.ours, t.engine, p.spans, p.newest, p.bytes, d.free, l.names FROM (
    SELECT any(database) AS db,
        any(sorting_key = 'toStartOfFiveMinutes(Timestamp), TraceId, Timestamp') AS ours,
        any(replaceRegexpOne(replaceRegexpOne(engine_full,
            '^(Replicated|Shared)?MergeTree(\\([^)]*\\))?', 'MergeTree'),
            '(?s) TTL .*?( SETTINGS |$)', '\\1')) AS engine
    FROM system.tables
    WHERE database = if({database} = '', currentDatabase(), {database}) AND name = {name}
) AS t, (
    SELECT sum(rows) AS spans, least(max(max_time), now()) AS newest,
        sum(bytes_on_disk) / greatest(sum(rows), 1) AS bytes
    FROM system.parts
    WHERE database = if({database} = '', currentDatabase(), {database}) AND table = {name}
        AND active
) AS p, (
    SELECT sum(unreserved_space) AS free FROM system.disks WHERE name IN (
        SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name IN (
            SELECT storage_policy FROM system.tables
            WHERE database = if({database} = '', currentDatabase(), {database})
                AND name = {name}))
) AS d, (
    SELECT groupArray(name) AS names FROM (
        SELECT name FROM system.tables
        WHERE database = if({database} = '', currentDatabase(), {database})
            AND startsWith(name, {scratch})
        ORDER BY name)
) AS l
