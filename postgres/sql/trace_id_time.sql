-- trace_id_time: the time of the clear half, to the millisecond. Every 16-byte
-- ID has one, from 2020 to 2089, ours or not. For text that is not 32 lower-case
-- hex digits, and for other than 16 bytes, the result is NULL.
--
-- These three are used in indexes and scans, so they are written to be inlined:
-- one expression of immutable parts, every name with its schema. For the same
-- reason the two with a CASE are not STRICT; the result for NULL is still NULL.

CREATE OR REPLACE FUNCTION trace_id_time(id text) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.octet_length(id) OPERATOR(pg_catalog.=) 32
               AND id COLLATE pg_catalog."C" OPERATOR(pg_catalog.~) '^[0-9a-f]*$'::pg_catalog.text
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.substr(id, 1, 11))::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id bytea) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.length(id) OPERATOR(pg_catalog.=) 16
    THEN pg_catalog.to_timestamp(
      (('x'::pg_catalog.text OPERATOR(pg_catalog.||) pg_catalog.encode(id, 'hex'::pg_catalog.text))::pg_catalog.bit(41)::pg_catalog.int8
       OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
      )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
    END
$$;

CREATE OR REPLACE FUNCTION trace_id_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT pg_catalog.to_timestamp(
    (('x'::pg_catalog.text OPERATOR(pg_catalog.||)
      pg_catalog.encode(pg_catalog.uuid_send(id), 'hex'::pg_catalog.text))::pg_catalog.bit(41)::pg_catalog.int8
     OPERATOR(pg_catalog.+) 1577836800000::pg_catalog.int8
    )::pg_catalog.float8 OPERATOR(pg_catalog./) 1000::pg_catalog.float8)
$$;
