# A view of the spans of both tables, and one of their times, by the name that tools look for.
CREATE OR REPLACE VIEW {{table .History}}{{.OnCluster}}
SQL SECURITY INVOKER COMMENT {{text .Comment}} AS
SELECT {{template "columns" .}}, _part, _part_offset FROM {{table .Spans}}
UNION ALL
SELECT {{template "columns" .}}, _part, _part_offset FROM {{table .Other}};
CREATE OR REPLACE VIEW {{table .HistoryLookup}}{{.OnCluster}}
SQL SECURITY INVOKER COMMENT {{text .Comment}} AS
SELECT TraceId, Start, End FROM {{table .Lookup}}
