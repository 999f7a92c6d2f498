-- What Jaeger's storage asks (internal/storage/v2/clickhouse at 8498073ff of 2026-08-20), with values for
-- its arguments.

-- trace
SELECT
    id, trace_id, trace_state, parent_span_id, name, kind, start_time, status_code,
    status_message, duration, bool_attributes.key, bool_attributes.value, double_attributes.key,
    double_attributes.value, int_attributes.key, int_attributes.value, str_attributes.key,
    str_attributes.value, complex_attributes.key, complex_attributes.value, events.name,
    events.timestamp, events.bool_attributes.key, events.bool_attributes.value,
    events.double_attributes.key, events.double_attributes.value, events.int_attributes.key,
    events.int_attributes.value, events.str_attributes.key, events.str_attributes.value,
    events.complex_attributes.key, events.complex_attributes.value, links.trace_id, links.span_id,
    links.trace_state, links.bool_attributes.key, links.bool_attributes.value,
    links.double_attributes.key, links.double_attributes.value, links.int_attributes.key,
    links.int_attributes.value, links.str_attributes.key, links.str_attributes.value,
    links.complex_attributes.key, links.complex_attributes.value, service_name,
    resource_bool_attributes.key, resource_bool_attributes.value, resource_double_attributes.key,
    resource_double_attributes.value, resource_int_attributes.key, resource_int_attributes.value,
    resource_str_attributes.key, resource_str_attributes.value, resource_complex_attributes.key,
    resource_complex_attributes.value, scope_name, scope_version, scope_bool_attributes.key,
    scope_bool_attributes.value, scope_double_attributes.key, scope_double_attributes.value,
    scope_int_attributes.key, scope_int_attributes.value, scope_str_attributes.key,
    scope_str_attributes.value, scope_complex_attributes.key, scope_complex_attributes.value
FROM spans s WHERE s.trace_id = '{trace}';

-- search
SELECT l.trace_id, min(t.start) AS start, max(t.end) AS end
FROM (
    SELECT DISTINCT s.trace_id FROM spans s
    WHERE 1=1 AND s.service_name = '{service}' AND s.name = 'GET /0' AND s.duration >= 100000000
        AND s.duration <= 900000000 AND s.start_time >= '{from}' AND s.start_time <= '{to}'
        AND (
            arrayExists((key, value) -> key = 'user.id' AND value = 'u1', s.str_attributes.key,
                s.str_attributes.value)
            OR arrayExists((key, value) -> key = 'user.id' AND value = 'u1',
                s.resource_str_attributes.key, s.resource_str_attributes.value)
            OR arrayExists((key, value) -> key = 'user.id' AND value = 'u1',
                s.scope_str_attributes.key, s.scope_str_attributes.value)
            OR arrayExists(x -> arrayExists((key, value) -> key = 'user.id' AND value = 'u1',
                x.str_attributes.key, x.str_attributes.value), s.events)
            OR arrayExists(x -> arrayExists((key, value) -> key = 'user.id' AND value = 'u1',
                x.str_attributes.key, x.str_attributes.value), s.links))
    LIMIT 1000) l
LEFT JOIN trace_id_timestamps t ON l.trace_id = t.trace_id
GROUP BY l.trace_id;

-- services
SELECT name FROM services GROUP BY name;

-- operations
SELECT name, span_kind FROM operations WHERE service_name = '{service}' GROUP BY name, span_kind;

-- attributes
SELECT attribute_key, type, level FROM attribute_metadata WHERE attribute_key IN ('user.id');

-- latencies
SELECT toStartOfInterval(start_time, toIntervalSecond(60)) AS ts, service_name,
    quantile(0.95)(duration) / 1e6 AS val
FROM spans
WHERE start_time >= '{from}' AND start_time < '{to}' AND service_name IN ('{service}')
    AND kind IN ('server')
GROUP BY ts, service_name ORDER BY ts;

-- dependencies
SELECT dependencies_json FROM dependencies WHERE timestamp >= '{from}' AND timestamp < '{to}'
