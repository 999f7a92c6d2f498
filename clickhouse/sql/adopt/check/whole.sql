-- Prepare has finished, and nothing was dropped since.
WITH
    countIf(name = {times_name}) AND countIf(name = {feed_name} AND comment != {filling}) AS filled,
    countIf(name IN ({history_name}, {history_times_name})) = 2 AS views
SELECT if(filled, 'a view of both tables is missing', {times_name} || ' or the view that fills it '
    || 'is missing or incomplete, so traces are not found by ID') || if({phase} = 'finished',
    ': `create` creates and fills it', ': `adopt prepare` creates it') AS problem
FROM system.tables
WHERE database = {database}
HAVING NOT filled AND countIf(name = {live_name} AND engine LIKE '%MergeTree')
    OR NOT views AND countIf(name = {other_name})
