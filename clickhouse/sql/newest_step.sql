-- The traces with the newest first spans since a time, unless the page is full; without those that
-- the lookup table knows to have begun before that time. A scalar subquery runs on the server that
-- was asked: on a cluster the limit is that of all shards. ClickHouse looks each element of
-- arrayJoin up in indexes, but not those of an array.
    (SELECT groupArray(TraceId) FROM (
        SELECT TraceId, min(Timestamp) AS Start FROM {spans}
        WHERE {more} AND Timestamp >= {since} AND Timestamp < {to:DateTime64(9, 'UTC')}
            AND TraceId != ''
        GROUP BY TraceId
        HAVING Start >= {from:DateTime64(9, 'UTC')}{before}
        ORDER BY Start DESC, TraceId DESC{most})) AS seen{k},
    (SELECT groupUniqArray(TraceId) FROM {lookup}
        WHERE TraceId IN (SELECT arrayJoin(seen{k})) AND Start < {since}) AS older{k},
    (SELECT groupArray(id) FROM (
        SELECT arrayJoin({either}) AS id WHERE id NOT IN (SELECT arrayJoin(older{k}))
        LIMIT {limit})) AS page{k},
