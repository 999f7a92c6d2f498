-- Functions for trace IDs in PostgreSQL 13 or newer. Running the file again does no harm.
--
-- trace_id_time returns the time of the clear half, to the millisecond. For every
-- ID of more than 64 bits, ours or not, that is a time from 2020 to 2089. For other
-- IDs, for text that is not 32 lower-case hex digits, and for other than 16 bytes,
-- the result is NULL.
--
-- The three functions are used in indexes and scans, so they are written to be
-- inlined: one expression of immutable parts, every name with its schema. For the
-- same reason they are not STRICT; the result for NULL is still NULL.

CREATE OR REPLACE FUNCTION trace_id_time(id text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.octet_length(id) OPERATOR(pg_catalog.=) 32
               AND id COLLATE pg_catalog."C" OPERATOR(pg_catalog.~) '^(?!0{16})[0-9a-f]*$'::pg_catalog.text
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
               AND id OPERATOR(pg_catalog.>) '\x0000000000000000ffffffffffffffff'::pg_catalog.bytea
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
        pg_catalog.encode(id, 'hex'::pg_catalog.text))::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN id OPERATOR(pg_catalog.>)
                   '00000000-0000-0000-ffff-ffffffffffff'::pg_catalog.uuid
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
        pg_catalog.encode(pg_catalog.uuid_send(id), 'hex'::pg_catalog.text)
       )::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
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
