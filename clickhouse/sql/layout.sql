-- How a table of spans is laid out: one that is created, and the new one of an adoption.
ENGINE = {{.Engine}}
PARTITION BY toDate(Timestamp)
PRIMARY KEY (toStartOfFiveMinutes(Timestamp), TraceId)
ORDER BY (toStartOfFiveMinutes(Timestamp){{if .Newest}} DESC{{end}}, TraceId, Timestamp)
{{- with .TTL}}
TTL {{.}}
{{- end}}
SETTINGS {{.Settings}}
