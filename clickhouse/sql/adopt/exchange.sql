EXCHANGE TABLES {live} AND {other}{on_cluster}
