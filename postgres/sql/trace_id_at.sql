-- trace_id_at: a new ID for a row that has none: its clear half is t, to the
-- millisecond, and the other 87 bits are random, so it does not decode and never
-- verifies. For a time before 2020 or past 2089 the result is NULL.
--
-- The random bits are those of a random UUID without its six fixed ones: its
-- hex digits 18 to 32 and 1 to 7. The sequence is never 0, so that the high
-- half is never 0, which would make it a 64-bit ID.

CREATE OR REPLACE FUNCTION trace_id_at(t timestamptz) RETURNS text
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '2020-01-01 00:00:00+00' AND t < '2089-09-06 15:47:35.552+00' THEN
    lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC', t))) * 1000)::bigint - 1577836800000) << 23
      | greatest(('x' || substr(random, 2, 6))::bit(23)::bigint, 1)), 16, '0')
    || substr(random, 18, 15) || substr(random, 1, 1) END
  FROM (SELECT encode(uuid_send(gen_random_uuid()), 'hex') AS random) AS r
$$;

CREATE OR REPLACE FUNCTION trace_id_at_bytea(t timestamptz) RETURNS bytea
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '2020-01-01 00:00:00+00' AND t < '2089-09-06 15:47:35.552+00' THEN
    decode(lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC', t))) * 1000)::bigint - 1577836800000) << 23
      | greatest(('x' || substr(random, 2, 6))::bit(23)::bigint, 1)), 16, '0')
    || substr(random, 18, 15) || substr(random, 1, 1), 'hex') END
  FROM (SELECT encode(uuid_send(gen_random_uuid()), 'hex') AS random) AS r
$$;

CREATE OR REPLACE FUNCTION trace_id_at_uuid(t timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT CASE WHEN t >= '2020-01-01 00:00:00+00' AND t < '2089-09-06 15:47:35.552+00' THEN
    (lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC', t))) * 1000)::bigint - 1577836800000) << 23
      | greatest(('x' || substr(random, 2, 6))::bit(23)::bigint, 1)), 16, '0')
    || substr(random, 18, 15) || substr(random, 1, 1))::uuid END
  FROM (SELECT encode(uuid_send(gen_random_uuid()), 'hex') AS random) AS r
$$;
