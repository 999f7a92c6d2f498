-- Fails if two tables do not have equally many spans in a partition.
SELECT throwIf(sumIf(rows, table = {one}) != sumIf(rows, table = {two}),
    {one} || ' and ' || {two} || ' do not have equally many spans')
FROM system.parts
WHERE active AND database = {database} AND table IN ({one}, {two}) AND partition_id = {partition}
