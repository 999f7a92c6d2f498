-- uuid_v1_time: the time of a version 1 UUID (RFC 9562), its ticks of 100 ns
-- truncated to the microsecond; NULL for any other UUID.
--
-- Seconds and microseconds are added separately: an interval times a number is
-- computed in double precision, which does not hold all of 1582 to 5236 at once.

CREATE OR REPLACE FUNCTION uuid_v1_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT timezone('UTC', timestamp '1582-10-15 00:00:00'
    + ticks / 10000000 * interval '1 second' + ticks / 10 % 1000000 * interval '1 microsecond')
  FROM (SELECT ('x' || substr(v1, 16, 3) || substr(v1, 10, 4) || substr(v1, 1, 8))::bit(60)::bigint AS ticks
        FROM (SELECT substring(id::text, '^.{8}-.{4}-1.{3}-[89ab]') AS v1) AS u) AS v
$$;

-- uuid_v1_at: the version 1 UUID of a time, a clock sequence (0 to 16383) and a
-- node. Equal arguments give equal UUIDs: rows that share a microsecond need
-- different clock sequences or nodes. NULL for another clock sequence and for a
-- time before 1582-10-15 or past 5236-03-31 21:21:00.684697, both UTC.

CREATE OR REPLACE FUNCTION uuid_v1_at(t timestamptz, clock_seq int, node macaddr) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '1582-10-15 00:00:00+00' AND t < '5236-03-31 21:21:00.684698+00' AND clock_seq BETWEEN 0 AND 16383 THEN
    (substr(ticks, 8, 8) || substr(ticks, 4, 4) || '1' || substr(ticks, 1, 3)
      || to_hex(clock_seq | 32768) || replace(node::text, ':', ''))::uuid END
  FROM (SELECT lpad(to_hex((date_part('epoch', date_trunc('minute', u))::bigint * 1000000
                            + date_part('microseconds', u)::bigint + 12219292800000000) * 10), 15, '0') AS ticks
        FROM (SELECT timezone('UTC', least(greatest(t, '1582-10-15 00:00:00+00'), '5236-03-31 21:21:00.684697+00')) AS u) AS v) AS w
$$;
