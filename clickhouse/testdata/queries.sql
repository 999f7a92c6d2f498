-- {Database: Table: Cluster: Layout:0 TTL:0s LogsTable: Slack:0s ReadOnly:false KeepLookup:false}

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId = {id:String} AND Timestamp >= traceIDNotBefore({id:String}, INTERVAL 3600 SECOND)
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId IN {ids:Array(String)} AND Timestamp >= traceIDNotBefore(arrayMin({ids:Array(String)}), INTERVAL 3600 SECOND)
ORDER BY TraceId, Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"ids" "['19000000000000000000000000000001','19000000000000000000000000000002']"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId = {id:String}
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel_traces`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel_traces` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel_traces`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel_traces` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND TraceId < {before:String} AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"before" "19000000000000000000000000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
ORDER BY TraceId, Timestamp, SpanId
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
ORDER BY Timestamp
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel_traces`
WHERE ServiceName = {service:String}
    AND SpanName = {name:String}
    AND Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND Duration >= {min_duration:UInt64}
    AND Duration <= {max_duration:UInt64}
    AND StatusCode IN ('STATUS_CODE_ERROR', 'Error')
ORDER BY Timestamp DESC LIMIT 20 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"service" "orders"} {"name" "GET /"} {"min_duration" "1000000000"} {"max_duration" "60000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel_traces`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND mapContains(SpanAttributes, {span_key0:String}) AND SpanAttributes[{span_key0:String}] = {span_value0:String}
    AND mapContains(SpanAttributes, {span_key1:String}) AND SpanAttributes[{span_key1:String}] = {span_value1:String}
    AND mapContains(ResourceAttributes, {resource_key0:String}) AND ResourceAttributes[{resource_key0:String}] = {resource_value0:String}
ORDER BY Timestamp DESC LIMIT 5 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"span_key0" "a"} {"span_value0" "x"} {"span_key1" "b"} {"span_value1" "it's"} {"resource_key0" "host.name"} {"resource_value0" "h"}]

-- {Database: Table: Cluster: Layout:2 TTL:0s LogsTable: Slack:1m0s ReadOnly:false KeepLookup:false}

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId = {id:String} AND Timestamp >= traceIDNotBefore({id:String}, INTERVAL 60 SECOND) AND Timestamp < traceIDTime({id:String}) + INTERVAL 1 HOUR
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId IN {ids:Array(String)} AND Timestamp >= traceIDNotBefore(arrayMin({ids:Array(String)}), INTERVAL 60 SECOND) AND Timestamp < traceIDTime(arrayMax({ids:Array(String)})) + INTERVAL 1 HOUR
ORDER BY TraceId, Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"ids" "['19000000000000000000000000000001','19000000000000000000000000000002']"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId = {id:String}
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel_traces`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel_traces` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel_traces`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel_traces` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND TraceId < {before:String} AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"before" "19000000000000000000000000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR
ORDER BY TraceId, Timestamp, SpanId
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel_traces`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
ORDER BY Timestamp
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel_traces`
WHERE ServiceName = {service:String}
    AND SpanName = {name:String}
    AND Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND Duration >= {min_duration:UInt64}
    AND Duration <= {max_duration:UInt64}
    AND StatusCode IN ('STATUS_CODE_ERROR', 'Error')
ORDER BY Timestamp DESC LIMIT 20 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"service" "orders"} {"name" "GET /"} {"min_duration" "1000000000"} {"max_duration" "60000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel_traces`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND mapContains(SpanAttributes, {span_key0:String}) AND SpanAttributes[{span_key0:String}] = {span_value0:String}
    AND mapContains(SpanAttributes, {span_key1:String}) AND SpanAttributes[{span_key1:String}] = {span_value1:String}
    AND mapContains(ResourceAttributes, {resource_key0:String}) AND ResourceAttributes[{resource_key0:String}] = {resource_value0:String}
ORDER BY Timestamp DESC LIMIT 5 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"span_key0" "a"} {"span_value0" "x"} {"span_key1" "b"} {"span_value1" "it's"} {"resource_key0" "host.name"} {"resource_value0" "h"}]

-- {Database:otel Table:spans Cluster:main Layout:0 TTL:0s LogsTable: Slack:0s ReadOnly:false KeepLookup:false}

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel`.`spans`
WHERE TraceId = {id:String} AND Timestamp >= traceIDNotBefore({id:String}, INTERVAL 3600 SECOND)
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel`.`spans`
WHERE TraceId IN {ids:Array(String)} AND Timestamp >= traceIDNotBefore(arrayMin({ids:Array(String)}), INTERVAL 3600 SECOND)
ORDER BY TraceId, Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"ids" "['19000000000000000000000000000001','19000000000000000000000000000002']"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel`.`spans`
WHERE TraceId = {id:String}
ORDER BY Timestamp, SpanId
SETTINGS use_skip_indexes_on_data_read = 0
-- [{"id" "19000000000000000000000000000001"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel`.`spans`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel`.`spans` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0, distributed_product_mode = 'local'
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM `otel`.`spans`
WHERE TraceId IN (SELECT DISTINCT TraceId FROM `otel`.`spans` WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND TraceId < {before:String} AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND AND Timestamp < {to:DateTime64(9, 'UTC')} + INTERVAL 1 HOUR ORDER BY TraceId DESC LIMIT 100) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
GROUP BY TraceId
ORDER BY TraceId DESC
SETTINGS use_skip_indexes_on_data_read = 0, distributed_product_mode = 'local'
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"before" "19000000000000000000000000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel`.`spans`
WHERE TraceId >= traceIDMin({from:DateTime64(9, 'UTC')}) AND TraceId < traceIDMin({to:DateTime64(9, 'UTC')}) AND Timestamp >= {from:DateTime64(9, 'UTC')} - INTERVAL 3600 SECOND
ORDER BY TraceId, Timestamp, SpanId
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT `Timestamp`, `TraceId`, `SpanId`, `ParentSpanId`, `TraceState`, `SpanName`, `SpanKind`, `ServiceName`, `ResourceAttributes`, `ScopeName`, `ScopeVersion`, `SpanAttributes`, `Duration`, `StatusCode`, `StatusMessage`, `Events.Timestamp`, `Events.Name`, `Events.Attributes`, `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`
FROM `otel`.`spans`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
ORDER BY Timestamp
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel`.`spans`
WHERE ServiceName = {service:String}
    AND SpanName = {name:String}
    AND Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND Duration >= {min_duration:UInt64}
    AND Duration <= {max_duration:UInt64}
    AND StatusCode IN ('STATUS_CODE_ERROR', 'Error')
ORDER BY Timestamp DESC LIMIT 20 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"service" "orders"} {"name" "GET /"} {"min_duration" "1000000000"} {"max_duration" "60000000000"}]

SELECT Timestamp, TraceId, ServiceName, SpanName, SpanKind, Duration, StatusCode
FROM `otel`.`spans`
WHERE Timestamp >= {from:DateTime64(9, 'UTC')} AND Timestamp < {to:DateTime64(9, 'UTC')}
    AND mapContains(SpanAttributes, {span_key0:String}) AND SpanAttributes[{span_key0:String}] = {span_value0:String}
    AND mapContains(SpanAttributes, {span_key1:String}) AND SpanAttributes[{span_key1:String}] = {span_value1:String}
    AND mapContains(ResourceAttributes, {resource_key0:String}) AND ResourceAttributes[{resource_key0:String}] = {resource_value0:String}
ORDER BY Timestamp DESC LIMIT 5 WITH TIES
-- [{"from" "2026-10-15 00:00:00.000000000"} {"to" "2026-10-15 01:00:00.000000000"} {"span_key0" "a"} {"span_value0" "x"} {"span_key1" "b"} {"span_value1" "it's"} {"resource_key0" "host.name"} {"resource_value0" "h"}]

