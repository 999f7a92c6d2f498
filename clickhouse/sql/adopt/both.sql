(SELECT TraceId, Timestamp FROM {live} UNION ALL SELECT TraceId, Timestamp FROM {other})
