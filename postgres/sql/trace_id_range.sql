-- trace_id_min, trace_id_max: the lowest and the highest ID of t's millisecond,
-- the inclusive bounds of a range query. A time before 2020 counts as the first
-- millisecond, one past 2089 as the last, and so do the two infinities. The
-- bounds are returned as text (32 lower-case hex digits), bytea (16 bytes) and uuid.
--
-- timezone('UTC', ...) is for IMMUTABLE: parts of a timestamptz depend on the
-- session's time zone, those of a timestamp do not.

CREATE OR REPLACE FUNCTION trace_id_min(t timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23), 16, '0') || '0000000000000000'
$$;

CREATE OR REPLACE FUNCTION trace_id_min_bytea(t timestamptz) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT decode(lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23), 16, '0') || '0000000000000000', 'hex')
$$;

CREATE OR REPLACE FUNCTION trace_id_min_uuid(t timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT (lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23), 16, '0') || '0000000000000000')::uuid
$$;

CREATE OR REPLACE FUNCTION trace_id_max(t timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23 | 8388607), 16, '0') || 'ffffffffffffffff'
$$;

CREATE OR REPLACE FUNCTION trace_id_max_bytea(t timestamptz) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT decode(lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23 | 8388607), 16, '0') || 'ffffffffffffffff', 'hex')
$$;

CREATE OR REPLACE FUNCTION trace_id_max_uuid(t timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
  SELECT (lpad(to_hex(((date_part('epoch', date_trunc('milliseconds', timezone('UTC',
           least(greatest(t, '2020-01-01 00:00:00+00'), '2089-09-06 15:47:35.551+00')))) * 1000)::bigint
           - 1577836800000) << 23 | 8388607), 16, '0') || 'ffffffffffffffff')::uuid
$$;
