-- Fails if a table is not one of those that were to be dropped, or does not hold what it should.
SELECT throwIf(count() > 0, 'another operator exchanged the tables, or spans were stored: '
    || 'nothing was dropped; look at the status')
FROM {tables}
WHERE database = {database} AND name = {name} AND (toString(uuid) NOT IN ({uuids}) OR name {wrong} (
    SELECT table FROM {parts}
    WHERE active AND database = {database} AND table = {name} AND rows > 0))
