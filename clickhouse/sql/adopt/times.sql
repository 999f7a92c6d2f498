-- When the traces of both tables began and ended.
CREATE OR REPLACE VIEW {view}{on_cluster} AS
SELECT TraceId, Start, End FROM {lookup}
COMMENT {comment}
