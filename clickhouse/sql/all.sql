by_service (SELECT * ORDER BY ServiceName, SpanName, Timestamp)
