-- Fails if a table is not the one that was to be dropped, or does not hold what it should.
SELECT throwIf(count() > 0, 'another operator exchanged the tables, or spans were stored: '
    || 'nothing was dropped; look at the status, and for detached parts')
FROM (
    SELECT toString(uuid) AS id, sorting_key, name GLOBAL IN (
        SELECT table FROM {parts_everywhere}
        WHERE active AND database = {database} AND table = {name} AND rows > 0
        UNION ALL
        SELECT table FROM {detached_everywhere}
        WHERE database = {database} AND table = {name}) AS filled
    FROM {tables_everywhere}
    WHERE database = {database} AND name = {name})
WHERE id != {uuid} OR sorting_key != {key}
    OR filled AND {must_be_empty} OR NOT filled AND {must_be_filled}
