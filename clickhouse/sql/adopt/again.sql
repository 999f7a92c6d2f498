# The interrupted copy of {partition} begins again, unless its spans are being moved: a move that
# has found its table by the former name continues although the table was renamed.
RENAME TABLE IF EXISTS {copied} TO {unique};
SELECT throwIf(count() > 0, 'another operator is moving spans: copy again later')
FROM system.processes WHERE query_kind = 'Alter' AND position(query, {end}) > 0;
{empty};
DROP TABLE IF EXISTS {unique} SETTINGS max_table_size_to_drop = 0;
DROP TABLE IF EXISTS {copy} SETTINGS max_table_size_to_drop = 0
