-- When the traces of both tables began and ended.
CREATE OR REPLACE VIEW {history_times}{on_cluster}
SQL SECURITY INVOKER AS
SELECT TraceId, Start, End FROM {lookup}
COMMENT {comment}
