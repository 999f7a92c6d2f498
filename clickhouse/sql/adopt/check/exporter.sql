-- The table has the exporter's columns.
WITH [{column_names}] AS names, [{column_types}] AS types
SELECT 'the table ' || {live_name} || ' cannot be adopted: column ' || of || multiIf(
    type = '', ' is missing; this is not the table of the Collector\'s exporter; Coroot\'s own '
        || 'collector, for example, has another one',
    ' has the type "' || type || '", not ' || types[indexOf(names, of)] || if(type LIKE '%JSON%',
        '; tables with json: true cannot be adopted',
        '; alter the column first, if the exporter has changed since the table was created')
    ) AS problem
FROM (SELECT arrayJoin(names) AS of) AS ours
LEFT JOIN (
    SELECT name, type FROM system.columns WHERE database = {database} AND table = {live_name}
) AS theirs ON name = of
WHERE type != types[indexOf(names, of)]
ORDER BY indexOf(names, of)
LIMIT 1
