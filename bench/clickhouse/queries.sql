-- IDs: ordered
SELECT TraceId FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY TraceId HAVING count() = 10
ORDER BY traceIDTime(TraceId) BETWEEN '2026-10-20 08:00:00' AND '2026-10-20 10:00:00' DESC,
    cityHash64(TraceId) LIMIT 5;

-- IDs: random
SELECT TraceId FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY TraceId HAVING count() = 10
ORDER BY traceIDTime(TraceId) BETWEEN '2026-10-20 08:00:00' AND '2026-10-20 10:00:00',
    cityHash64(TraceId) LIMIT 5;

-- IDs: absent
SELECT concat(substring(TraceId, 1, 16), '0000000000000000') FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY TraceId ORDER BY cityHash64(TraceId) LIMIT 5;

-- IDs: some
SELECT arrayStringConcat(groupArray(concat('''', TraceId, '''')), ', ') FROM (
SELECT TraceId FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY TraceId HAVING count() = 10 ORDER BY cityHash64(TraceId) LIMIT 100);

-- IDs: newest
SELECT arrayStringConcat(groupArray(concat('''', TraceId, '''')), ', ') FROM (
SELECT TraceId FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY TraceId HAVING count() >= 5 AND min(Timestamp) < '2026-10-20 09:23:30'
ORDER BY min(Timestamp) DESC LIMIT 100);

-- TraceId = x
SELECT * FROM spans WHERE TraceId = '{ordered}';

-- TraceId = x, a random ID
SELECT * FROM spans WHERE TraceId = '{random}';

-- TraceId = x, an absent ID
SELECT * FROM spans WHERE TraceId = '{absent}';

-- one trace, Grafana's two steps
WITH '{ordered}' AS trace_id,
    (SELECT min(Start) FROM spans_trace_id_ts WHERE TraceId = trace_id) AS trace_start,
    (SELECT max(End) + 1 FROM spans_trace_id_ts WHERE TraceId = trace_id) AS trace_end
SELECT * FROM spans
WHERE TraceId = trace_id AND Timestamp >= trace_start AND Timestamp <= trace_end;

-- one trace, our query
{ours};

-- 100 traces of 5 min
SELECT * FROM spans WHERE TraceId IN ({some});

-- 100 newest traces
SELECT * FROM spans WHERE TraceId IN ({newest});

-- 100 newest traces, with their time
SELECT * FROM spans WHERE TraceId IN ({newest})
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:26:00';

-- all spans of 10 s
SELECT * FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:20:10';

-- all spans of 1 min
SELECT * FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:21:00';

-- all spans of 5 min
SELECT * FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00';

-- all spans of 5 min in two buckets
SELECT * FROM spans
WHERE Timestamp >= '2026-10-20 09:22:30' AND Timestamp < '2026-10-20 09:27:30';

-- slowest roots, 5 min
SELECT TraceId, SpanId, Duration FROM spans
WHERE ParentSpanId = ''
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
ORDER BY Duration DESC, SpanId LIMIT 20;

-- errors, 5 min
SELECT TraceId, SpanId, ServiceName, Timestamp FROM spans
WHERE StatusCode = 'Error'
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- an attribute, 5 min
SELECT TraceId, SpanId FROM spans
WHERE SpanAttributes['user.id'] = '4242'
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
ORDER BY SpanId LIMIT 100;

-- rates of all services, 5 min
SELECT ServiceName, count(), countIf(StatusCode = 'Error'), quantileExact(0.95)(Duration)
FROM spans
WHERE Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY ServiceName;

-- rates of all services, {hours} h
SELECT ServiceName, count(), countIf(StatusCode = 'Error'), quantileExact(0.95)(Duration)
FROM spans
WHERE Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
GROUP BY ServiceName;

-- roots of all: newest, {hours} h
SELECT TraceId, SpanId, Timestamp FROM spans
WHERE ParentSpanId = ''
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
ORDER BY Timestamp DESC LIMIT 100;

-- a service: list, 5 min
SELECT TraceId, SpanId, ServiceName, SpanName, Timestamp, Duration, StatusCode, SpanAttributes
FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- a service: list, 15 min
SELECT TraceId, SpanId, ServiceName, SpanName, Timestamp, Duration, StatusCode, SpanAttributes
FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:35:00'
ORDER BY Timestamp DESC, SpanId LIMIT 100;

-- a service: newest 100, {hours} h
SELECT TraceId, SpanId, ServiceName, SpanName, Timestamp, Duration, StatusCode, SpanAttributes
FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
ORDER BY Timestamp DESC LIMIT 100;

-- a service: newest errors, {hours} h
SELECT TraceId, SpanId, Timestamp FROM spans
WHERE ServiceName = 'service-3' AND StatusCode = 'Error'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
ORDER BY Timestamp DESC LIMIT 100;

-- a service: all errors, {hours} h
SELECT TraceId, SpanId, Timestamp FROM spans
WHERE ServiceName = 'service-3' AND StatusCode = 'Error'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours});

-- a service: slowest of a name, {hours} h
SELECT TraceId, SpanId, Duration FROM spans
WHERE ServiceName = 'service-3' AND SpanName = 'GET /api/2'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
ORDER BY Duration DESC, SpanId LIMIT 20;

-- a service: roots by name, {hours} h
SELECT SpanName, count() FROM spans
WHERE ServiceName = 'service-3' AND ParentSpanId = ''
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
GROUP BY SpanName;

-- a service: p99 a minute, 5 min
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 09:20:00' AND Timestamp < '2026-10-20 09:25:00'
GROUP BY m;

-- a service: p99 a minute, 1 h
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 09:00:00' AND Timestamp < '2026-10-20 10:00:00'
GROUP BY m;

-- a service: p99 a minute, {hours} h
SELECT toStartOfMinute(Timestamp) AS m, count(), quantileExact(0.99)(Duration) FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
GROUP BY m;

-- a service: error rate, {hours} h
SELECT toStartOfHour(Timestamp) AS h, countIf(StatusCode = 'Error') / count() FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
GROUP BY h;

-- a service: durations of a name, {hours} h
SELECT toStartOfHour(Timestamp) AS h, intDiv(Duration, 10000000) AS b, count() FROM spans
WHERE ServiceName = 'service-3' AND SpanName = 'GET /api/2'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours})
GROUP BY h, b;

-- a service: names, {hours} h
SELECT DISTINCT SpanName FROM spans
WHERE ServiceName = 'service-3'
    AND Timestamp >= '2026-10-20 08:00:00' AND Timestamp < toDateTime(1792483200 + 3600 * {hours});
