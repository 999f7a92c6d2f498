-- When the traces of both tables began and ended.
CREATE OR REPLACE VIEW {times}{on_cluster} AS
{select}
COMMENT {comment}
