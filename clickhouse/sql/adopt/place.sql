# The copy of {partition} moves into {home_plain}, and the spans that were copied are dropped.
ALTER TABLE {copy} MOVE PARTITION ID {partition} TO TABLE {home};
{empty};
DROP TABLE IF EXISTS {copied} SETTINGS max_table_size_to_drop = 0;
DROP TABLE IF EXISTS {copy} SETTINGS max_table_size_to_drop = 0
