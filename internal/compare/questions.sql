-- The questions. "size: x" gives megabytes. "place: x" gives what {x} stands for in those after it,
-- as text of SQL. "(count)": of spans with one time any may be returned, so only their number is
-- compared.

-- size: disk
SELECT sum(bytes_on_disk) / 1e6 FROM system.parts
WHERE active AND database = {database_name} AND table = {spans_name};

-- size: keys and marks
SELECT sum(primary_key_bytes_in_memory + marks_bytes) / 1e6 FROM system.parts
WHERE active AND database = {database_name} AND table = {spans_name};

-- size: disk of the lookup table
SELECT sum(bytes_on_disk) / 1e6 FROM system.parts
WHERE active AND database = {database_name} AND table = {lookup_name};

-- place: service
SELECT formatRowNoNewline('Values', ServiceName) FROM {spans} WHERE {all} AND ServiceName != ''
GROUP BY ServiceName
ORDER BY abs(toInt64(count()) - sum(count()) OVER () / 25), ServiceName LIMIT 1;

-- place: name
SELECT formatRowNoNewline('Values', SpanName) FROM {spans}
WHERE {all} AND ServiceName = {service}
GROUP BY SpanName ORDER BY count() DESC, SpanName LIMIT 1;

-- place: slow
SELECT toString(quantileExact(0.9999)(Duration)) FROM {spans}
WHERE {all} AND ServiceName = {service};

-- place: attribute
SELECT concat('SpanAttributes[', formatRowNoNewline('Values', key), '] = ',
    formatRowNoNewline('Values', value))
FROM {spans} ARRAY JOIN mapKeys(SpanAttributes) AS key, mapValues(SpanAttributes) AS value
WHERE {five_minutes}
GROUP BY key, value ORDER BY abs(toInt64(count()) - 10), key, value LIMIT 1;

-- place: id
SELECT formatRowNoNewline('Values', TraceId) FROM {spans} WHERE {five_minutes} AND TraceId != ''
GROUP BY TraceId HAVING count() > 1 ORDER BY cityHash64(TraceId) LIMIT 1;

-- place: absent
SELECT formatRowNoNewline('Values', concat(substring(TraceId, 1, 16), repeat('0', 16)))
FROM {spans} WHERE {five_minutes} AND TraceId != ''
GROUP BY TraceId ORDER BY cityHash64(TraceId) LIMIT 1;

-- place: some
SELECT concat('(', arrayStringConcat(groupArray(formatRowNoNewline('Values', TraceId)), ', '), ')')
FROM (
    SELECT TraceId FROM {spans} WHERE {five_minutes} AND TraceId != ''
    GROUP BY TraceId HAVING count() > 1 ORDER BY cityHash64(TraceId) LIMIT 100);

-- place: newest
SELECT concat('(', arrayStringConcat(groupArray(formatRowNoNewline('Values', TraceId)), ', '), ')')
FROM (
    SELECT TraceId FROM {spans} WHERE {five_minutes} AND TraceId != ''
    GROUP BY TraceId HAVING min(Timestamp) < {at} + INTERVAL 210 SECOND
    ORDER BY min(Timestamp) DESC, TraceId LIMIT 100);

-- TraceId = x
SELECT * FROM {spans} WHERE TraceId = {id};

-- TraceId = x, an absent ID
SELECT * FROM {spans} WHERE TraceId = {absent};

-- one trace, Grafana's two steps
WITH {id} AS trace_id,
    (SELECT min(Start) FROM {lookup} WHERE TraceId = trace_id) AS trace_start,
    (SELECT max(End) + 1 FROM {lookup} WHERE TraceId = trace_id) AS trace_end
SELECT * FROM {spans}
WHERE TraceId = trace_id AND Timestamp >= trace_start AND Timestamp <= trace_end;

-- 100 traces of 5 min
SELECT * FROM {spans} WHERE TraceId IN {some};

-- 100 newest traces
SELECT * FROM {spans} WHERE TraceId IN {newest};

-- 100 newest traces, with their time
SELECT * FROM {spans} WHERE TraceId IN {newest}
    AND Timestamp >= {at} AND Timestamp < {at} + INTERVAL 6 MINUTE;

-- all spans of 10 s
SELECT * FROM {spans} WHERE Timestamp >= {at} AND Timestamp < {at} + INTERVAL 10 SECOND;

-- all spans of 1 min
SELECT * FROM {spans} WHERE Timestamp >= {at} AND Timestamp < {at} + INTERVAL 1 MINUTE;

-- all spans of 5 min
SELECT * FROM {spans} WHERE {five_minutes};

-- slowest roots, 5 min
SELECT TraceId, SpanId, Duration FROM {spans} WHERE ParentSpanId = '' AND {five_minutes}
ORDER BY Duration DESC, SpanId LIMIT 20;

-- errors, 5 min
SELECT TraceId, SpanId, ServiceName, Timestamp FROM {spans}
WHERE StatusCode = 'Error' AND {five_minutes}
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- an attribute, 5 min
SELECT TraceId, SpanId FROM {spans} WHERE {attribute} AND {five_minutes}
ORDER BY SpanId LIMIT 100;

-- rates of all services, 5 min
SELECT ServiceName, count(), countIf(StatusCode = 'Error'),
    quantileExact(0.95)(Duration)
FROM {spans} WHERE {five_minutes} GROUP BY ServiceName;

-- rates of all services, {hours} h
SELECT ServiceName, count(), countIf(StatusCode = 'Error'),
    quantileExact(0.95)(Duration)
FROM {spans} WHERE {all} GROUP BY ServiceName;

-- roots of all: newest, {hours} h (count)
SELECT TraceId, SpanId, Timestamp FROM {spans} WHERE ParentSpanId = '' AND {all}
ORDER BY Timestamp DESC LIMIT 100;

-- a service: list, 5 min
SELECT TraceId, SpanId, ServiceName, SpanName, Timestamp, Duration, StatusCode, SpanAttributes
FROM {spans} WHERE ServiceName = {service} AND {five_minutes}
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- a service: newest 100, {hours} h (count)
SELECT TraceId, SpanId, ServiceName, SpanName, Timestamp, Duration, StatusCode, SpanAttributes
FROM {spans} WHERE ServiceName = {service} AND {all}
ORDER BY Timestamp DESC LIMIT 100;

-- a service: newest errors, {hours} h (count)
SELECT TraceId, SpanId, Timestamp FROM {spans}
WHERE ServiceName = {service} AND StatusCode = 'Error' AND {all}
ORDER BY Timestamp DESC LIMIT 100;

-- a service: newest errors with a second key, {hours} h
SELECT TraceId, SpanId, Timestamp FROM {spans}
WHERE ServiceName = {service} AND StatusCode = 'Error' AND {all}
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- a service: slower than 99.99 %, {hours} h
SELECT TraceId, SpanId, Duration FROM {spans}
WHERE ServiceName = {service} AND Duration >= {slow} AND {all}
ORDER BY Duration DESC, SpanId LIMIT 20;

-- a service: slow roots, {hours} h
SELECT TraceId, ServiceName, SpanName, Timestamp, Duration FROM {spans}
WHERE ServiceName = {service} AND ParentSpanId = '' AND Duration >= {slow} AND {all}
ORDER BY Timestamp DESC, Duration DESC LIMIT 20;

-- a service: slowest of a name, {hours} h
SELECT TraceId, SpanId, Duration FROM {spans}
WHERE ServiceName = {service} AND SpanName = {name} AND {all}
ORDER BY Duration DESC, SpanId LIMIT 20;

-- a service: roots by name, {hours} h
SELECT SpanName, count() FROM {spans}
WHERE ServiceName = {service} AND ParentSpanId = '' AND {all}
GROUP BY SpanName;

-- a service: p99 a minute, 5 min
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM {spans}
WHERE ServiceName = {service} AND {five_minutes} GROUP BY m;

-- a service: p99 a minute, 1 h
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM {spans}
WHERE ServiceName = {service} AND Timestamp >= {to} - INTERVAL 1 HOUR AND Timestamp < {to}
GROUP BY m;

-- a service: p99 a minute, {hours} h
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM {spans}
WHERE ServiceName = {service} AND {all} GROUP BY m;

-- a service: error rate, {hours} h
SELECT toStartOfHour(Timestamp) AS h,
    countIf(StatusCode = 'Error') / count()
FROM {spans} WHERE ServiceName = {service} AND {all} GROUP BY h;

-- a service: durations of a name, {hours} h
SELECT toStartOfHour(Timestamp) AS h, intDiv(Duration, 10000000) AS b, count() FROM {spans}
WHERE ServiceName = {service} AND SpanName = {name} AND {all} GROUP BY h, b;

-- a service: names, {hours} h
SELECT DISTINCT SpanName FROM {spans} WHERE ServiceName = {service} AND {all};
