# This server can exchange tables, unlike some file systems and database engines.
CREATE TABLE IF NOT EXISTS {trial_a}{on_cluster} (x UInt8) ENGINE = Null COMMENT {comment};
CREATE TABLE IF NOT EXISTS {trial_b}{on_cluster} (x UInt8) ENGINE = Null COMMENT {comment};
EXCHANGE TABLES {trial_a} AND {trial_b}{on_cluster};
DROP TABLE IF EXISTS {trial_a}{on_cluster};
DROP TABLE IF EXISTS {trial_b}{on_cluster}
