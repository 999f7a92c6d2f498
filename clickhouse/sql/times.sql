-- When some traces began and ended. The first and the last DateTime stand for all times that are
-- earlier or later, of wrong clocks.
(SELECT (
    if(min(Start) = toDateTime(0), toDateTime64('1900-01-01', 0, 'UTC'), min(Start)),
    if(max(End) = toDateTime(4294967295), toDateTime64('2299-12-31', 0, 'UTC'), max(End) + 1))
FROM {lookup} WHERE TraceId IN {ids}) AS times
