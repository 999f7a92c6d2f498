# This server can exchange tables, unlike some file systems and database engines.
CREATE TABLE IF NOT EXISTS {{table .TrialA}}{{.OnCluster}} (x UInt8) ENGINE = Null
COMMENT {{text .Comment}};
CREATE TABLE IF NOT EXISTS {{table .TrialB}}{{.OnCluster}} (x UInt8) ENGINE = Null
COMMENT {{text .Comment}};
EXCHANGE TABLES {{table .TrialA}} AND {{table .TrialB}}{{.OnCluster}};
DROP TABLE IF EXISTS {{table .TrialA}}{{.OnCluster}};
DROP TABLE IF EXISTS {{table .TrialB}}{{.OnCluster}}
