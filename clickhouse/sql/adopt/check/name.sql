-- Names of tables are those of files, in which a - takes three characters.
WITH
    {live_name} || {longest_end} AS longest,
    getMaxTableNameLengthForDatabase({database}) AS most
SELECT 'the name ' || {live_name} || ' is too long for an adoption, whose longest one has '
    || toString(length({longest_end})) || ' more characters: this server allows '
    || toString(most) || ' in this database' AS problem
WHERE length(longest) + 2 * countSubstrings(longest, '-') > most
