-- When some traces began and ended, and whether that is unknown because a span began before 1970 or
-- after 2106. Such a time becomes the first or the last DateTime, or the start is later than the
-- end. This is decided here: a condition on such spans would prevent the use of the bucket.
(SELECT (min(Start), max(End) + 1,
    countIf(Start > End OR Start = toDateTime(0) OR End = toDateTime(4294967295)) > 0)
FROM {lookup} WHERE TraceId IN {ids}) AS times
