# The interrupted copy of {partition} begins again.
RENAME TABLE IF EXISTS {copied} TO {unique};
{empty};
DROP TABLE IF EXISTS {unique} SETTINGS max_table_size_to_drop = 0;
DROP TABLE IF EXISTS {copy} SETTINGS max_table_size_to_drop = 0
