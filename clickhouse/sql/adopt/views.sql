# A view of the spans of both tables, and one of their times, by the name that tools look for.
CREATE OR REPLACE VIEW {history}{on_cluster}
SQL SECURITY INVOKER COMMENT {comment} AS
SELECT {columns}, _part, _part_offset FROM {live}
UNION ALL
SELECT {columns}, _part, _part_offset FROM {other};
CREATE OR REPLACE VIEW {history_times}{on_cluster}
SQL SECURITY INVOKER COMMENT {comment} AS
SELECT TraceId, Start, End FROM {lookup}
