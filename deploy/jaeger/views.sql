-- Views by which Jaeger 2 reads the spans of otel.otel_traces, the exporter's table or ours, as its own
-- ClickHouse storage with create_schema: false. All attributes are strings, as the exporter stores
-- them, and a scope has none. Replace otel by your database, and otel_traces by otel_traces_all
-- during an adoption.
CREATE DATABASE IF NOT EXISTS jaeger;

CREATE OR REPLACE VIEW jaeger.spans SQL SECURITY INVOKER AS
WITH
    CAST([], 'Array(Tuple(key String, value Bool))') AS no_bool,
    CAST([], 'Array(Tuple(key String, value Float64))') AS no_double,
    CAST([], 'Array(Tuple(key String, value Int64))') AS no_int,
    CAST([], 'Array(Tuple(key String, value String))') AS no_str
SELECT
    SpanId AS id, TraceId AS trace_id, TraceState AS trace_state, ParentSpanId AS parent_span_id,
    SpanName AS name, lower(SpanKind) AS kind, Timestamp AS start_time,
    StatusCode AS status_code, StatusMessage AS status_message, toInt64(Duration) AS duration,
    ServiceName AS service_name, ScopeName AS scope_name, ScopeVersion AS scope_version,
    CAST(SpanAttributes, 'Array(Tuple(key String, value String))') AS str_attributes,
    CAST(ResourceAttributes, 'Array(Tuple(key String, value String))') AS resource_str_attributes,
    no_bool AS bool_attributes, no_double AS double_attributes, no_int AS int_attributes,
    no_str AS complex_attributes,
    no_bool AS resource_bool_attributes, no_double AS resource_double_attributes,
    no_int AS resource_int_attributes, no_str AS resource_complex_attributes,
    no_bool AS scope_bool_attributes, no_double AS scope_double_attributes,
    no_int AS scope_int_attributes, no_str AS scope_str_attributes,
    no_str AS scope_complex_attributes,
    arrayMap((name, timestamp, attributes) -> CAST(
        (name, timestamp, [], [], [], attributes, []),
        'Tuple(name String, timestamp DateTime64(9),
            bool_attributes Array(Tuple(key String, value Bool)),
            double_attributes Array(Tuple(key String, value Float64)),
            int_attributes Array(Tuple(key String, value Int64)),
            str_attributes Array(Tuple(key String, value String)),
            complex_attributes Array(Tuple(key String, value String)))'),
        `Events.Name`, `Events.Timestamp`, `Events.Attributes`) AS events,
    arrayMap((trace, span, state, attributes) -> CAST(
        (trace, span, state, [], [], [], attributes, []),
        'Tuple(trace_id String, span_id String, trace_state String,
            bool_attributes Array(Tuple(key String, value Bool)),
            double_attributes Array(Tuple(key String, value Float64)),
            int_attributes Array(Tuple(key String, value Int64)),
            str_attributes Array(Tuple(key String, value String)),
            complex_attributes Array(Tuple(key String, value String)))'),
        `Links.TraceId`, `Links.SpanId`, `Links.TraceState`, `Links.Attributes`) AS links
FROM otel.otel_traces;

-- What Jaeger offers in its menus is of the last day.
CREATE OR REPLACE VIEW jaeger.services SQL SECURITY INVOKER AS
SELECT DISTINCT ServiceName AS name FROM otel.otel_traces
WHERE Timestamp > now() - INTERVAL 1 DAY;

CREATE OR REPLACE VIEW jaeger.operations SQL SECURITY INVOKER AS
SELECT DISTINCT ServiceName AS service_name, SpanName AS name, lower(SpanKind) AS span_kind
FROM otel.otel_traces WHERE Timestamp > now() - INTERVAL 1 DAY;

-- Since 2.14. Without metadata, Jaeger looks for attributes as strings, in all places.
CREATE OR REPLACE VIEW jaeger.attribute_metadata AS
SELECT '' AS attribute_key, '' AS type, '' AS level WHERE 0;

CREATE OR REPLACE VIEW jaeger.trace_id_timestamps SQL SECURITY INVOKER AS
SELECT TraceId AS trace_id, Start AS start, End AS end FROM otel.otel_traces_trace_id_ts;

CREATE OR REPLACE VIEW jaeger.dependencies AS
SELECT now64(9) AS timestamp, '[]' AS dependencies_json WHERE 0
