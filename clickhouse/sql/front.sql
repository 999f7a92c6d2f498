-- The low half spreads traces evenly and keeps each on one shard, also if it is another text. The
-- clear half would send all traces of a minute to one shard.
# create {{.Front}}
CREATE TABLE IF NOT EXISTS {{table .Front}}{{.OnCluster}} AS {{table .Behind}}
ENGINE = Distributed({{name .Cluster}}, {{.Database}}, {{name .Behind}},
    reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16)))))
