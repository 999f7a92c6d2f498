-- Both tables have all columns. A full disk may leave a table without its definition.
SELECT any(name) || ' has the column `' || column || ', and ' || if(any(name) = {live_name},
    {other_name}, {live_name}) || ' has not: make them equal, and run prepare again' AS problem
FROM (
    SELECT name, arrayJoin(splitByString(', `', substring(extract(create_table_query,
        '(?s)\\((`.*?)(?:, (?:INDEX|PROJECTION|CONSTRAINT) .*)?\\) ENGINE = '), 2))) AS column
    FROM system.tables WHERE database = {database} AND name IN ({live_name}, {other_name}))
WHERE {phase} = 'prepared'
GROUP BY column
HAVING count() = 1
ORDER BY any(name) = {live_name} DESC, column
LIMIT 1
