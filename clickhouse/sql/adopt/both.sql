(SELECT TraceId, Timestamp FROM {{table .Spans}}
UNION ALL SELECT TraceId, Timestamp FROM {{table .Other}})
