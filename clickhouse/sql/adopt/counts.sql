-- How many spans a table has and how many begin in the future; and of 100,000 spans of its newest
-- partition, the share of those that are not outliers.
SELECT
    toString((SELECT count() FROM {table})) AS rows,
    toString((SELECT count() FROM {table} WHERE Timestamp > now() + INTERVAL 1 HOUR)) AS future,
    toString(count()) AS sampled,
    ifNotFinite(avg(NOT ({outlier})), 0) AS ordered
FROM (SELECT Timestamp, TraceId FROM {table} WHERE {newest} LIMIT 100000)
