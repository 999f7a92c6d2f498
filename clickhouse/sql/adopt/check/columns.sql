-- A table has all columns of the one whose name or spans it gets. A full disk may leave a table
-- without its definition.
WITH if({copies}, ({other_name}, {live_name}), ({live_name}, {other_name})) AS pair
SELECT pair.1 || ' has the column `' || column || ', and ' || pair.2
    || ' has not: make them equal, and run prepare again' AS problem
FROM (
    SELECT name, arrayJoin(splitByString(', `', substring(extract(create_table_query,
        '(?s)\\((`.*?)(?:, (?:INDEX|PROJECTION|CONSTRAINT) .*)?\\) ENGINE = '), 2))) AS column
    FROM system.tables WHERE database = {database} AND name IN ({live_name}, {other_name}))
WHERE {copies} OR {phase} = 'prepared'
GROUP BY column
HAVING groupArray(name) = [pair.1]
ORDER BY column
LIMIT 1
