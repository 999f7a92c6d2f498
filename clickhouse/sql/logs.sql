-- All columns that every version of the exporter's table of logs has.
SELECT Timestamp, TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, ServiceName, Body,
    ResourceSchemaUrl, ResourceAttributes, ScopeSchemaUrl, ScopeName, ScopeVersion, ScopeAttributes,
    LogAttributes
FROM {logs}
WHERE TraceId IN {ids:Array(String)}
ORDER BY TraceId, Timestamp{settings}
