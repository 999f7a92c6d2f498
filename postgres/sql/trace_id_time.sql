-- trace_id_time: the time of the clear half, to the millisecond. Every 16-byte
-- ID has one, from 2020 to 2089, ours or not. Text that is not 32 lower-case
-- hex digits, and bytes that are not 16, give NULL.
--
-- These three stand in indexes and in scans, so they are written to be inlined:
-- one expression of strict and immutable parts, every name with its schema.

CREATE OR REPLACE FUNCTION trace_id_time(id text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT pg_catalog.to_timestamp(
    (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
      pg_catalog.substring(id COLLATE pg_catalog."C", '^([0-9a-f]{11})[0-9a-f]{21}$'::pg_catalog.text)
     )::pg_catalog.bit(41)::pg_catalog.int8 OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
    )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id bytea) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT pg_catalog.to_timestamp(
    (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
      pg_catalog.substring(pg_catalog.encode(id, 'hex'::pg_catalog.text) COLLATE pg_catalog."C",
                           '^([0-9a-f]{11})[0-9a-f]{21}$'::pg_catalog.text)
     )::pg_catalog.bit(41)::pg_catalog.int8 OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
    )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT pg_catalog.to_timestamp(
    (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
      pg_catalog.encode(pg_catalog.uuid_send(id), 'hex'::pg_catalog.text)
     )::pg_catalog.bit(41)::pg_catalog.int8 OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
    )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
$$;
