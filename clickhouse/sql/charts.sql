-- _part_offset makes it an index of rows, too: ClickHouse finds rare spans of a service by it.
charts (
        SELECT Timestamp, ServiceName, SpanName, SpanKind, StatusCode, Duration, _part_offset
        ORDER BY ServiceName, SpanName, Timestamp)
