-- trace_id_time returns the time of the clear half, to the millisecond. For every
-- 16-byte ID, ours or not, that is a time from 2020 to 2089. For text that is not
-- 32 lower-case hex digits, and for other than 16 bytes, the result is NULL.
--
-- The three functions are used in indexes and scans, so they are written to be
-- inlined: one expression of immutable parts, every name with its schema. For the
-- same reason those with a CASE are not STRICT; the result for NULL is still NULL.

CREATE OR REPLACE FUNCTION trace_id_time(id text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.octet_length(id) OPERATOR(pg_catalog.=) 32
               AND id COLLATE pg_catalog."C" OPERATOR(pg_catalog.~) '^[0-9a-f]*$'::pg_catalog.text
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
        pg_catalog.substr(id, 1, 11))::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id bytea) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.length(id) OPERATOR(pg_catalog.=) 16
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
        pg_catalog.encode(id, 'hex'::pg_catalog.text))::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT pg_catalog.to_timestamp(
    (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
      pg_catalog.encode(pg_catalog.uuid_send(id), 'hex'::pg_catalog.text)
     )::pg_catalog.bit(41)::pg_catalog.int8
     OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
    )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
$$;

-- trace_id_min and trace_id_max return the lowest and the highest ID of t's
-- millisecond, the inclusive bounds of a range query. Times before 2020 and -infinity
-- count as the first millisecond, times past 2089 and infinity as the last.
--
-- timezone('UTC', ...) is for IMMUTABLE: parts of a timestamptz depend on the
-- session's time zone, those of a timestamp do not.

CREATE OR REPLACE FUNCTION trace_id_min(t timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')
         ))) * 1000)::bigint - 1577836800000) << 23), 16, '0') || '0000000000000000'
$$;

CREATE OR REPLACE FUNCTION trace_id_max(t timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')
         ))) * 1000)::bigint - 1577836800000) << 23 | 8388607), 16, '0') || 'ffffffffffffffff'
$$;

-- trace_id_at returns a new ID for a row that has none. Its clear half is t, to the
-- millisecond, and the other 87 bits are random, so it cannot be decoded or
-- verified. For a time before 2020 or past 2089 the result is NULL.
--
-- The random bits are those of a random UUID without its six fixed ones: its
-- hex digits 18 to 32 and 1 to 7. The sequence is never 0, so that the high
-- half is never 0, which would make it a 64-bit ID.

CREATE OR REPLACE FUNCTION trace_id_at(t timestamptz) RETURNS text
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '2020-01-01 00:00:00+00' AND t < '2089-09-06 15:47:35.552+00' THEN
    lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC', t))) * 1000)::bigint
        - 1577836800000) << 23
      | greatest(('x' || substr(random, 2, 6))::bit(23)::bigint, 1)), 16, '0')
    || substr(random, 18, 15) || substr(random, 1, 1) END
  FROM (SELECT encode(uuid_send(gen_random_uuid()), 'hex') AS random) AS r
$$;

-- uuid_v1_time returns the time of a version 1 UUID (RFC 9562), its ticks of 100 ns truncated to
-- the microsecond, or NULL for any other UUID.
--
-- Seconds and microseconds are added separately: an interval times a number is
-- computed in double precision, which does not hold all of 1582 to 5236 at once.

CREATE OR REPLACE FUNCTION uuid_v1_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT timezone('UTC', timestamp '1582-10-15 00:00:00'
    + ticks / 10000000 * interval '1 second' + ticks / 10 % 1000000 * interval '1 microsecond')
  FROM (SELECT ('x' || substr(v1, 16, 3) || substr(v1, 10, 4) || substr(v1, 1, 8)
               )::bit(60)::bigint AS ticks
        FROM (SELECT substring(id::text, '^.{8}-.{4}-1.{3}-[89ab]') AS v1) AS u) AS v
$$;

-- uuid_v1_at returns the version 1 UUID of a time, a clock sequence (0 to 16383) and a node. Equal
-- arguments give equal UUIDs: rows that share a microsecond need different clock sequences or
-- nodes. The result is NULL for another clock sequence, and for a time before 1582-10-15 or past
-- 5236-03-31 21:21:00.684697, both UTC.

CREATE OR REPLACE FUNCTION uuid_v1_at(t timestamptz, clock_seq int, node macaddr) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '1582-10-15 00:00:00+00' AND t < '5236-03-31 21:21:00.684698+00'
               AND clock_seq BETWEEN 0 AND 16383 THEN
    (substr(ticks, 8, 8) || substr(ticks, 4, 4) || '1' || substr(ticks, 1, 3)
      || to_hex(clock_seq | 32768) || replace(node::text, ':', ''))::uuid END
  FROM (SELECT lpad(to_hex((date_part('epoch', date_trunc('minute', u))::bigint * 1000000
                            + date_part('microseconds', u)::bigint + 12219292800000000) * 10),
                    15, '0') AS ticks
        FROM (SELECT timezone('UTC', least(greatest(t, '1582-10-15 00:00:00+00'),
                                           '5236-03-31 21:21:00.684697+00')) AS u) AS v) AS w
$$;
