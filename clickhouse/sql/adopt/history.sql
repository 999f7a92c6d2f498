-- The spans of both tables.
CREATE OR REPLACE VIEW {history}{on_cluster}
SQL SECURITY INVOKER AS
SELECT {columns}, _part, _part_offset FROM {live}
UNION ALL
SELECT {columns}, _part, _part_offset FROM {other}
COMMENT {comment}
