-- What tools and operators ask of a table of spans, as their own sources have it, with variables at their defaults or
-- naming one of 50 services. {table}, {trace} and {span} are filled in. A query that says "(by ID)" asks for one trace;
-- of one that says "(any rows)" only the number of rows is defined.
--
-- Grafana: the ClickHouse data source 4.20.0 and 4.13.0 (src/data/sqlGenerator.ts, defaultQueryOptions.ts) and its
-- dashboards of OpenTelemetry (src/dashboards/otel-*.json). HyperDX: its published generator, hyperdx.cjs, and
-- DBDeltaChart.tsx and the sessions page of b52a6fa. Coroot: clickhouse/traces.go at 0da96f0, with today's names of
-- kinds and status codes. Perses: get-click-house-trace-data.ts of its plugins at 033a559. The exporter's README, main
-- of August 2026. Operators: what people write by hand.

-- Grafana: builder: trace by ID, 4.20.0 (by ID)
WITH '{trace}' as __gf_trace_id, (SELECT min(Start) FROM {table}_trace_id_ts WHERE TraceId = __gf_trace_id) as __gf_trace_start, (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE TraceId = __gf_trace_id) as __gf_trace_end SELECT "TraceId" as traceID, "SpanId" as spanID, "ParentSpanId" as parentSpanID, "ServiceName" as serviceName, "SpanName" as operationName, multiply(toUnixTimestamp64Nano("Timestamp"), 0.000001) as startTime, multiply("Duration", 0.000001) as duration, arrayMap(key -> map('key', key, 'value',"SpanAttributes"[key]), mapKeys("SpanAttributes")) as tags, arrayMap(key -> map('key', key, 'value',"ResourceAttributes"[key]), mapKeys("ResourceAttributes")) as serviceTags, if("StatusCode" IN ('Error', 'STATUS_CODE_ERROR'), 2, 0) as statusCode, "SpanKind" as kind, "StatusMessage" as statusMessage FROM {table} WHERE traceID = __gf_trace_id AND "Timestamp" >= __gf_trace_start AND "Timestamp" <= __gf_trace_end;
-- Grafana: builder: trace by ID, 4.13.0 (by ID)
WITH '{trace}' as trace_id, (SELECT min(Start) FROM {table}_trace_id_ts WHERE TraceId = trace_id) as trace_start, (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE TraceId = trace_id) as trace_end SELECT "TraceId" as traceID, "SpanId" as spanID, "ParentSpanId" as parentSpanID, "ServiceName" as serviceName, "SpanName" as operationName, multiply(toUnixTimestamp64Nano("Timestamp"), 0.000001) as startTime, multiply("Duration", 0.000001) as duration, arrayMap(key -> map('key', key, 'value',"SpanAttributes"[key]), mapKeys("SpanAttributes")) as tags, arrayMap(key -> map('key', key, 'value',"ResourceAttributes"[key]), mapKeys("ResourceAttributes")) as serviceTags, if("StatusCode" IN ('Error', 'STATUS_CODE_ERROR'), 2, 0) as statusCode, "SpanKind" as kind, "StatusMessage" as statusMessage FROM {table} WHERE traceID = trace_id AND "Timestamp" >= trace_start AND "Timestamp" <= trace_end;
-- Grafana: builder: trace by ID, no lookup (by ID)
SELECT "TraceId" as traceID, "SpanId" as spanID, "ParentSpanId" as parentSpanID, "ServiceName" as serviceName, "SpanName" as operationName, multiply(toUnixTimestamp64Nano("Timestamp"), 0.000001) as startTime, multiply("Duration", 0.000001) as duration, arrayMap(key -> map('key', key, 'value',"SpanAttributes"[key]), mapKeys("SpanAttributes")) as tags, arrayMap(key -> map('key', key, 'value',"ResourceAttributes"[key]), mapKeys("ResourceAttributes")) as serviceTags, if("StatusCode" IN ('Error', 'STATUS_CODE_ERROR'), 2, 0) as statusCode, "SpanKind" as kind, "StatusMessage" as statusMessage FROM {table} WHERE traceID = '{trace}';
-- Grafana: builder: search, 1 h
SELECT "TraceId" as traceID, "ServiceName" as serviceName, "SpanName" as operationName, "Timestamp" as startTime, multiply("Duration", 0.000001) as duration FROM {table} WHERE ( Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) ) AND ( ParentSpanId = '' ) AND ( Duration > 0 ) ORDER BY Timestamp DESC, Duration DESC LIMIT 1000;
-- Grafana: builder: search a service, 1 h
SELECT "TraceId" as traceID, "ServiceName" as serviceName, "SpanName" as operationName, "Timestamp" as startTime, multiply("Duration", 0.000001) as duration FROM {table} WHERE ( Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) ) AND ServiceName IN ('service-20') AND ( ParentSpanId = '' ) AND ( Duration > 0 ) ORDER BY Timestamp DESC, Duration DESC LIMIT 1000;
-- Grafana: builder: search a service, 24 h
SELECT "TraceId" as traceID, "ServiceName" as serviceName, "SpanName" as operationName, "Timestamp" as startTime, multiply("Duration", 0.000001) as duration FROM {table} WHERE ( Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) ) AND ServiceName IN ('service-20') AND ( ParentSpanId = '' ) AND ( Duration > 0 ) ORDER BY Timestamp DESC, Duration DESC LIMIT 1000;
-- Grafana: dashboard: services, 1 h
SELECT ServiceName FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) GROUP BY ServiceName ORDER BY count() DESC LIMIT 10;
-- Grafana: dashboard: distinct services, 1 h
SELECT DISTINCT ServiceName FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) ORDER BY ServiceName;
-- Grafana: dashboard: operations, 1 h
SELECT DISTINCT SpanName FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) ORDER BY SpanName LIMIT 200;
-- Grafana: dashboard: operations of a service, 1 h
SELECT DISTINCT SpanName FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') ORDER BY SpanName LIMIT 200;
-- Grafana: dashboard: status codes, 1 h
SELECT DISTINCT StatusCode FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) ORDER BY StatusCode;
-- Grafana: dashboard: deployments, 1 h (any rows)
SELECT time, ServiceName AS tags, version FROM (SELECT toStartOfInterval(Timestamp, INTERVAL 30 second) AS time, ServiceName, topK(1)(ResourceAttributes['service.version'])[1] AS version, lagInFrame(topK(1)(ResourceAttributes['service.version'])[1]) OVER (PARTITION BY ServiceName ORDER BY time) AS prev_version FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ResourceAttributes['service.version'] != '' GROUP BY ServiceName, time ORDER BY ServiceName, time) WHERE prev_version != '' AND prev_version != version ORDER BY time;
-- Grafana: dashboard: deployments of a service, 1 h (any rows)
SELECT time, ServiceName AS tags, version FROM (SELECT toStartOfInterval(Timestamp, INTERVAL 30 second) AS time, ServiceName, topK(1)(ResourceAttributes['service.version'])[1] AS version, lagInFrame(topK(1)(ResourceAttributes['service.version'])[1]) OVER (PARTITION BY ServiceName ORDER BY time) AS prev_version FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') AND ResourceAttributes['service.version'] != '' GROUP BY ServiceName, time ORDER BY ServiceName, time) WHERE prev_version != '' AND prev_version != version ORDER BY time;
-- Grafana: dashboard: map nodes, 1 h
SELECT ServiceName AS id, concat(toString(count()), ' spans') AS mainstat, round(avg(Duration) / 1000000, 1) AS secondarystat, countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) / count() AS arc__errors FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) GROUP BY ServiceName ORDER BY count() DESC LIMIT 30;
-- Grafana: dashboard: map edges, 1 h (any rows)
SELECT parent.ServiceName AS source, child.ServiceName AS target, count() AS calls FROM {table} AS child INNER JOIN {table} AS parent ON child.ParentSpanId = parent.SpanId AND child.TraceId = parent.TraceId WHERE child.Timestamp >= toDateTime(1791979200) AND child.Timestamp <= toDateTime(1791982800) AND parent.Timestamp >= toDateTime(1791979200) AND parent.Timestamp <= toDateTime(1791982800) AND parent.ServiceName != child.ServiceName GROUP BY source, target ORDER BY count() DESC LIMIT 50;
-- Grafana: dashboard: traces, 1 h (any rows)
SELECT TraceId, any(ServiceName) AS Service, any(SpanName) AS RootOperation, min(Timestamp) AS Time, max(Duration) AS Duration, count() AS Spans, anyIf(StatusCode, StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS Status FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) GROUP BY TraceId ORDER BY Time DESC LIMIT 200;
-- Grafana: dashboard: traces of a service, 1 h
SELECT TraceId, min(Timestamp) AS Time, max(Duration) AS Duration, count() AS Spans FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') GROUP BY TraceId ORDER BY Time DESC LIMIT 200;
-- Grafana: dashboard: sampled durations, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, Duration / 1000000 AS duration_ms FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') AND cityHash64(SpanId) % 500 = 0 ORDER BY time, duration_ms;
-- Grafana: dashboard: spans a minute, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, count() AS Spans FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') GROUP BY time ORDER BY time;
-- Grafana: dashboard: errors a minute, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS Errors FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') GROUP BY time ORDER BY time;
-- Grafana: dashboard: p99 a minute, 24 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, quantileExact(0.99)(Duration) / 1000000 AS p99_ms FROM {table} WHERE Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) AND ServiceName IN ('service-20') GROUP BY time ORDER BY time;
-- Grafana: dashboard: mean a minute, 24 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, avg(Duration) / 1000000 AS mean FROM {table} WHERE Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) AND ServiceName IN ('service-20') GROUP BY time ORDER BY time;
-- Grafana: dashboard: requests a second, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, count() / 60 AS rps FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') AND SpanKind = 'Server' GROUP BY time ORDER BY time;
-- Grafana: dashboard: error rate, 24 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second) AS time, countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) / count() AS error_rate FROM {table} WHERE Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) AND ServiceName IN ('service-20') AND SpanKind = 'Server' GROUP BY time ORDER BY time;
-- Grafana: dashboard: operations by p99, 1 h
SELECT SpanName AS Operation, count() AS Count, quantileExact(0.99)(Duration) AS P99 FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') AND SpanKind = 'Server' GROUP BY SpanName ORDER BY P99 DESC LIMIT 20;
-- Grafana: dashboard: top operations, 1 h
SELECT SpanName AS Operation, count() AS Count, countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS Errors, quantileExact(0.99)(Duration) AS P99, anyIf(if(StatusMessage != '', StatusMessage, SpanAttributes['http.status_code']), StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS TopError FROM {table} WHERE Timestamp >= toDateTime(1791979200) AND Timestamp <= toDateTime(1791982800) AND ServiceName IN ('service-20') GROUP BY Operation ORDER BY Count DESC LIMIT 15;
-- Grafana: dashboard: top operations, 24 h
SELECT SpanName AS Operation, count() AS Count, countIf(StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS Errors, quantileExact(0.99)(Duration) AS P99, anyIf(if(StatusMessage != '', StatusMessage, SpanAttributes['http.status_code']), StatusCode IN ('Error', 'STATUS_CODE_ERROR')) AS TopError FROM {table} WHERE Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) AND ServiceName IN ('service-20') GROUP BY Operation ORDER BY Count DESC LIMIT 15;
-- Grafana: dashboard: top errors, 24 h
SELECT SpanName AS Operation, SpanKind AS Kind, StatusMessage AS Error, count() AS Count, max(Timestamp) AS LastSeen FROM {table} WHERE Timestamp >= toDateTime(1791936000) AND Timestamp <= toDateTime(1792022399) AND ServiceName IN ('service-20') AND StatusCode IN ('Error', 'STATUS_CODE_ERROR') GROUP BY SpanName, SpanKind, StatusMessage ORDER BY Count DESC, Operation, Kind LIMIT 20;
-- HyperDX: attribute, 1 h
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND ((`SpanAttributes`['user.id'] = '77')) ORDER BY Timestamp DESC LIMIT 200;
-- HyperDX: histogram, 15 min
SELECT count(),StatusCode,toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791981900000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) GROUP BY StatusCode,toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` ORDER BY toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` ;
-- HyperDX: latency of a service, 1 h
SELECT quantile(0.95)(toFloat64OrNull(toString(Duration))),quantile(0.5)(toFloat64OrNull(toString(Duration))),toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND (ServiceName = 'service-20' AND SpanKind IN ('Server')) GROUP BY toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` ORDER BY toStartOfInterval(toDateTime(Timestamp), INTERVAL 1 minute) AS `__hdx_time_bucket` ;
-- HyperDX: list of a service, 12 h
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791939600000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND ((ServiceName = 'service-20')) ORDER BY Timestamp DESC LIMIT 200;
-- HyperDX: list of a service, 15 min
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791981900000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND ((ServiceName = 'service-20')) ORDER BY Timestamp DESC LIMIT 200;
-- HyperDX: list of errors, 1 h
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND ((StatusCode ILIKE '%Error%')) ORDER BY Timestamp DESC LIMIT 200;
-- HyperDX: list, 15 min
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791981900000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) ORDER BY Timestamp DESC LIMIT 200;
-- HyperDX: service map of errors, 1 h
SELECT count(),ServiceName FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND (StatusCode = 'Error') GROUP BY ServiceName ;
-- HyperDX: top endpoints of a service, 1 h
SELECT count(),quantile(0.95)(toFloat64OrNull(toString(Duration))),SpanName FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND (ServiceName = 'service-20') GROUP BY SpanName LIMIT 20;
-- HyperDX: waterfall (by ID)
SELECT Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId, SpanKind, SpanAttributes FROM {table} WHERE (Timestamp >= fromUnixTimestamp64Milli(1791975600000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000)) AND (TraceId = '{trace}') ORDER BY Timestamp ASC LIMIT 10000;
-- Coroot: trace by ID (by ID)
WITH (SELECT min(Start) FROM {table}_trace_id_ts WHERE TraceId = '{trace}') as start, (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE TraceId = '{trace}') as end SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, Duration, StatusCode, StatusMessage, ResourceAttributes, SpanAttributes, Events.Timestamp, Events.Name, Events.Attributes FROM {table} WHERE TraceId = '{trace}' AND Timestamp BETWEEN start AND end ORDER BY Timestamp;
-- Coroot: parents of spans (by ID)
WITH ['{trace}'] as traceIds, (SELECT min(Start) FROM {table}_trace_id_ts WHERE TraceId IN (traceIds)) as start, (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE TraceId IN (traceIds)) as end SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, Duration, StatusCode, StatusMessage, ResourceAttributes, SpanAttributes, Events.Timestamp, Events.Name, Events.Attributes FROM {table} WHERE Timestamp BETWEEN start AND end AND TraceId IN (traceIds) AND (TraceId, SpanId) IN (('{trace}', '{span}'));
-- Coroot: all services
SELECT DISTINCT ServiceName FROM {table};
-- Coroot: root histogram, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second), roundDown(Duration/1000000, [0, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000]), count(1), count(if(StatusCode = 'Error', 1, NULL)) FROM {table} WHERE SpanKind = 'Server' AND ParentSpanId = '' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') GROUP BY 1, 2;
-- Coroot: root summary, 1 h
SELECT ServiceName, SpanName, roundDown(Duration/1000000, [0, 5, 10, 25, 50, 100]), count(1) FROM {table} WHERE SpanKind = 'Server' AND ParentSpanId = '' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') GROUP BY 1, 2, 3;
-- Coroot: roots, 1 h
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, Duration, StatusCode, StatusMessage, ResourceAttributes, SpanAttributes, Events.Timestamp, Events.Name, Events.Attributes FROM {table} WHERE SpanKind = 'Server' AND ParentSpanId = '' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') ORDER BY Timestamp DESC LIMIT 100;
-- Coroot: roots of a service, 1 h
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, Duration, StatusCode, StatusMessage, ResourceAttributes, SpanAttributes, Events.Timestamp, Events.Name, Events.Attributes FROM {table} WHERE SpanKind = 'Server' AND ParentSpanId = '' AND ServiceName = 'service-20' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') ORDER BY Timestamp DESC LIMIT 100;
-- Coroot: service histogram, 1 h
SELECT toStartOfInterval(Timestamp, INTERVAL 60 second), roundDown(Duration/1000000, [0, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000]), count(1), count(if(StatusCode = 'Error', 1, NULL)) FROM {table} WHERE ServiceName = 'service-20' AND SpanKind = 'Server' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') GROUP BY 1, 2;
-- Coroot: spans of a service, 1 h
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, Duration, StatusCode, StatusMessage, ResourceAttributes, SpanAttributes, Events.Timestamp, Events.Name, Events.Attributes FROM {table} WHERE ServiceName = 'service-20' AND SpanKind = 'Server' AND Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') ORDER BY Timestamp DESC LIMIT 100;
-- Coroot: attribute values, 1 h
SELECT arrayJoin(arrayMap((k, v) -> (k, v), mapKeys(SpanAttributes), mapValues(SpanAttributes))) AS a, count() AS n FROM {table} WHERE Timestamp BETWEEN toDateTime64('2026-10-14 12:00:00', 9, 'UTC') AND toDateTime64('2026-10-14 13:00:00', 9, 'UTC') AND NOT startsWith(ServiceName, '/') GROUP BY a ORDER BY n DESC, a LIMIT 20;
-- exporter's README: trace by ID (by ID)
WITH '{trace}' as trace_id, (SELECT min(Start) FROM {table}_trace_id_ts WHERE TraceId = trace_id) as start, (SELECT max(End) + 1 FROM {table}_trace_id_ts WHERE TraceId = trace_id) as end SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage, toString(SpanAttributes), toString(ResourceAttributes), toString(Events.Name), toString(Links.TraceId) FROM {table} WHERE TraceId = trace_id AND Timestamp >= start AND Timestamp <= end LIMIT 100;
-- exporter's README: spans with an attribute
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage, toString(SpanAttributes), toString(ResourceAttributes), toString(Events.Name), toString(Links.TraceId) FROM {table} WHERE ServiceName = 'service-20' AND SpanAttributes['user.id'] = '77' AND Timestamp >= toDateTime('2026-10-14 13:00:00', 'UTC') - INTERVAL 1 HOUR LIMIT 100;
-- exporter's README: error spans (any rows)
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage, toString(SpanAttributes), toString(ResourceAttributes), toString(Events.Name), toString(Links.TraceId) FROM {table} WHERE ServiceName = 'service-20' AND StatusCode = 'Error' AND Timestamp >= toDateTime('2026-10-14 13:00:00', 'UTC') - INTERVAL 1 HOUR LIMIT 100;
-- exporter's README: slow spans (any rows)
SELECT Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage, toString(SpanAttributes), toString(ResourceAttributes), toString(Events.Name), toString(Links.TraceId) FROM {table} WHERE ServiceName = 'service-20' AND Duration > 1 * 1e7 AND Timestamp >= toDateTime('2026-10-14 13:00:00', 'UTC') - INTERVAL 1 HOUR LIMIT 100;
-- Operators: names of a service, 6 h
SELECT DISTINCT SpanName FROM {table} WHERE ServiceName = 'service-20' AND Timestamp >= '2026-10-14 06:00:00' AND Timestamp < '2026-10-14 12:00:00';
-- Operators: a service and name, 1 h
SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode FROM {table} WHERE ServiceName = 'service-20' AND SpanName = 'SELECT /2' AND Timestamp >= '2026-10-14 12:00:00' AND Timestamp < '2026-10-14 13:00:00' ORDER BY Timestamp DESC LIMIT 20;
-- Operators: a service and name, 24 h
SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode FROM {table} WHERE ServiceName = 'service-20' AND SpanName = 'SELECT /2' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' ORDER BY Timestamp DESC LIMIT 20;
-- Operators: p99 of a service and name a minute, 24 h
SELECT toStartOfMinute(Timestamp) AS t, count(), quantileExact(0.99)(Duration) FROM {table} WHERE ServiceName = 'service-20' AND SpanName = 'SELECT /2' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY t ORDER BY t;
-- Operators: error rate of a service and name, 6 h
SELECT toStartOfMinute(Timestamp) AS t, countIf(StatusCode = 'Error') / count() FROM {table} WHERE ServiceName = 'service-20' AND SpanName = 'SELECT /2' AND Timestamp >= '2026-10-14 06:00:00' AND Timestamp < '2026-10-14 12:00:00' GROUP BY t ORDER BY t;
-- Operators: a name of any service, 1 h
SELECT TraceId, ServiceName, Duration FROM {table} WHERE SpanName = 'SELECT /2' AND Timestamp >= '2026-10-14 12:00:00' AND Timestamp < '2026-10-14 13:00:00' ORDER BY Duration DESC LIMIT 20;
-- Operators: roots of a service by names, 24 h
SELECT SpanName, count(), avg(Duration) FROM {table} WHERE ServiceName = 'service-20' AND ParentSpanId = '' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY SpanName ORDER BY SpanName;
-- Operators: newest errors of a service, 24 h (any rows)
SELECT Timestamp, TraceId, SpanId, SpanName, StatusMessage, SpanAttributes['http.route'] FROM {table} WHERE ServiceName = 'service-20' AND StatusCode = 'Error' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' ORDER BY Timestamp DESC LIMIT 50;
-- Operators: newest errors of anything, 24 h (any rows)
SELECT Timestamp, TraceId, SpanId, ServiceName, SpanName, StatusMessage, SpanAttributes['http.route'] FROM {table} WHERE StatusCode = 'Error' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' ORDER BY Timestamp DESC LIMIT 50;
-- Operators: a service by an attribute, 1 h
SELECT Timestamp, TraceId, SpanName, Duration FROM {table} WHERE ServiceName = 'service-20' AND SpanAttributes['http.response.status_code'] = '500' AND Timestamp >= '2026-10-14 12:00:00' AND Timestamp < '2026-10-14 13:00:00' ORDER BY Timestamp DESC LIMIT 50;
-- Operators: a service by an attribute, 24 h
SELECT toStartOfHour(Timestamp) AS t, count() FROM {table} WHERE ServiceName = 'service-20' AND SpanAttributes['http.route'] = '/api/2' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY t ORDER BY t;
-- Operators: a service by version, 24 h
SELECT ResourceAttributes['service.version'] AS v, count(), quantileExact(0.95)(Duration) FROM {table} WHERE ServiceName = 'service-20' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY v ORDER BY v;
-- Operators: a pod, 24 h
SELECT count() FROM {table} WHERE ResourceAttributes['k8s.pod.name'] = 'service-20-1' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00';
-- Operators: a user, 24 h
SELECT Timestamp, TraceId, SpanName FROM {table} WHERE SpanAttributes['user.id'] = '77' AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' ORDER BY Timestamp DESC, SpanId LIMIT 20;
-- Operators: all spans, 5 min
SELECT * FROM {table} WHERE Timestamp >= '2026-10-14 12:10:00' AND Timestamp < '2026-10-14 12:15:00';
-- Operators: all spans, 1 min
SELECT * FROM {table} WHERE Timestamp >= '2026-10-14 12:10:00' AND Timestamp < '2026-10-14 12:11:00';
-- Operators: slowest of anything, 1 h
SELECT TraceId, ServiceName, SpanName, Duration FROM {table} WHERE Timestamp >= '2026-10-14 12:00:00' AND Timestamp < '2026-10-14 13:00:00' ORDER BY Duration DESC, SpanId LIMIT 20;
-- Operators: services by rate, 24 h
SELECT ServiceName, toStartOfHour(Timestamp) AS t, count(), countIf(StatusCode = 'Error') FROM {table} WHERE Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY ServiceName, t ORDER BY ServiceName, t;
-- Operators: services by rate, 5 min
SELECT ServiceName, count(), quantileExact(0.99)(Duration) FROM {table} WHERE Timestamp >= '2026-10-14 12:10:00' AND Timestamp < '2026-10-14 12:15:00' GROUP BY ServiceName ORDER BY ServiceName;
-- Operators: spans of three services, 6 h
SELECT SpanName, count() FROM {table} WHERE ServiceName IN ('service-20', 'service-7', 'service-33') AND Timestamp >= '2026-10-14 06:00:00' AND Timestamp < '2026-10-14 12:00:00' GROUP BY SpanName ORDER BY SpanName;
-- Operators: newest spans (any rows)
SELECT Timestamp, TraceId, ServiceName, SpanName FROM {table} ORDER BY Timestamp DESC LIMIT 50;
-- Operators: newest spans of a service, no bound (any rows)
SELECT Timestamp, TraceId, ServiceName, SpanName FROM {table} WHERE ServiceName = 'service-20' ORDER BY Timestamp DESC LIMIT 50;
-- Operators: a service, three days
SELECT toStartOfHour(Timestamp) AS t, count(), avg(Duration) FROM {table} WHERE ServiceName = 'service-20' AND Timestamp >= '2026-10-12 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY t ORDER BY t;
-- Operators: the trace of a span ID
SELECT TraceId FROM {table} WHERE SpanId = '{span}' LIMIT 1;
-- Operators: join with the lookup name, 1 h
SELECT t.TraceId, t.SpanName, l.Start, l.End FROM {table} AS t JOIN {table}_trace_id_ts AS l ON t.TraceId = l.TraceId WHERE t.ServiceName = 'service-20' AND t.StatusCode = 'Error' AND t.Timestamp >= '2026-10-14 12:00:00' AND t.Timestamp < '2026-10-14 13:00:00' ORDER BY t.SpanId;
-- Operators: exceptions of a service, 24 h
SELECT SpanName, count() FROM {table} WHERE ServiceName = 'service-20' AND has(Events.Name, 'exception') AND Timestamp >= '2026-10-14 00:00:00' AND Timestamp < '2026-10-15 00:00:00' GROUP BY SpanName;
-- HyperDX: sessions
SELECT MAX(Timestamp) AS maxTimestamp, MIN(Timestamp) AS minTimestamp, count() AS sessionCount, ResourceAttributes['rum.sessionId'] AS sessionId FROM {table} WHERE Timestamp >= fromUnixTimestamp64Milli(1791936000000) AND Timestamp <= fromUnixTimestamp64Milli(1792022399000) AND mapContains(ResourceAttributes, 'rum.sessionId') GROUP BY sessionId;
-- HyperDX: event deltas of a service (any rows)
WITH PartIds AS (SELECT tuple(_part, _part_offset) FROM {table} WHERE Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000) AND ServiceName = 'service-20' ORDER BY cityHash64(SpanId) DESC LIMIT 1000) SELECT * FROM {table} WHERE Timestamp >= fromUnixTimestamp64Milli(1791979200000) AND Timestamp <= fromUnixTimestamp64Milli(1791982800000) AND ServiceName = 'service-20' AND indexHint((_part, _part_offset) IN PartIds) ORDER BY cityHash64(SpanId) DESC LIMIT 1000;
-- Perses: trace by ID (by ID)
SELECT TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, toString(toUnixTimestamp64Nano(toDateTime64(Timestamp, 9))) AS StartTimeUnixNano, toString(Duration) AS DurationNano, StatusCode, StatusMessage, arrayMap(t -> toString(toUnixTimestamp64Nano(toDateTime64(t, 9))), Events.Timestamp) AS EventTimesUnixNano, Events.Name AS EventNames, Events.Attributes AS EventAttributes, Links.TraceId AS LinkTraceIds, Links.SpanId AS LinkSpanIds, Links.Attributes AS LinkAttributes FROM {table} WHERE TraceId = '{trace}' ORDER BY Timestamp;
-- Perses: search of a service, 1 h
SELECT TraceId, toString(min(toUnixTimestamp64Nano(toDateTime64(Timestamp, 9)))) AS StartTimeUnixNano, toString(max(toUnixTimestamp64Nano(toDateTime64(Timestamp, 9)) + toUInt64(Duration))) AS EndTimeUnixNano, if(countIf(ParentSpanId = '') > 0, argMinIf(ServiceName, Timestamp, ParentSpanId = ''), argMin(ServiceName, Timestamp)) AS RootServiceName, if(countIf(ParentSpanId = '') > 0, argMinIf(SpanName, Timestamp, ParentSpanId = ''), argMin(SpanName, Timestamp)) AS RootSpanName, sumMap(map(ServiceName, toUInt64(1))) AS SpanCounts, sumMap(map(ServiceName, toUInt64(lower(StatusCode) IN ('error', 'status_code_error')))) AS ErrorCounts FROM ( SELECT * FROM {table} WHERE Timestamp >= '2026-10-14 12:00:00' AND Timestamp < '2026-10-14 13:00:00' AND ServiceName = 'service-20' ) WHERE TraceId != '' GROUP BY TraceId ORDER BY min(toDateTime64(Timestamp, 9)) DESC LIMIT 21;
