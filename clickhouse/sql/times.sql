-- When some traces began and ended, and whether clocks before 1970 or after 2106 have made that
-- unknown: those times become the first or the last DateTime, or the start later than the end.
(SELECT (min(Start), max(End) + 1,
    countIf(Start > End OR Start = toDateTime(0) OR End = toDateTime(4294967295)) > 0)
FROM {lookup} WHERE TraceId IN {ids}) AS times
