PROJECTION charts (
        SELECT Timestamp, ServiceName, SpanName, SpanKind, StatusCode, Duration
        ORDER BY ServiceName, SpanName, Timestamp)
