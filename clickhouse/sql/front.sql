CREATE TABLE IF NOT EXISTS {table}{on_cluster} AS {local}
ENGINE = Distributed({cluster}, {database}, {local_name}, {shard})
