SELECT {{template "columns" .}}
FROM {{table .Spans}}
WHERE TraceId IN {ids:Array(String)}
ORDER BY TraceId, Timestamp, SpanId{{with .Settings}}
SETTINGS {{.}}{{end}}
