# The {side} table gets the name, unless it has it already.
SELECT throwIf(countIf((sorting_key = {our_key}) = {new}) > 0, 'the tables are exchanged already')
FROM system.tables WHERE database = {database} AND name = {live_name};
EXCHANGE TABLES {live} AND {other}{on_cluster}
