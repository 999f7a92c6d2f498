-- acquire
WITH clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
),
held AS MATERIALIZED (
	SELECT * FROM "traceflake_leases" WHERE holder = $1 FOR UPDATE
), stock AS MATERIALIZED (
	SELECT EXISTS (SELECT FROM "traceflake_leases" WHERE granted_until <= to_timestamp($3::bigint) AND node BETWEEN $5 AND $6) AS free
), may AS MATERIALIZED (
	SELECT stock.free AND $2::bigint <= clock.now + $7::bigint AND NOT EXISTS (SELECT FROM held) AS take FROM stock, clock
), found AS MATERIALIZED (
	SELECT node FROM (
		SELECT node FROM "traceflake_leases"
		WHERE (SELECT take FROM may) AND granted_until <= to_timestamp($3::bigint) AND node BETWEEN $8 AND $6
		ORDER BY node LIMIT 1 FOR UPDATE SKIP LOCKED
	) AS after UNION ALL SELECT node FROM (
		SELECT node FROM "traceflake_leases"
		WHERE (SELECT take FROM may) AND granted_until <= to_timestamp($3::bigint) AND node BETWEEN $5 AND $8 - 1
		ORDER BY node LIMIT 1 FOR UPDATE SKIP LOCKED
	) AS before LIMIT 1
), granted AS (
	UPDATE "traceflake_leases" AS t SET granted_from = to_timestamp($3::bigint), granted_until = to_timestamp($4::bigint),
		holder = $1, version = t.version + 1
	FROM found WHERE t.node = found.node
	RETURNING t.*
)
SELECT clock.now, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), stock.free, b.node, b.nodes, b.version, b.holder,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint
FROM clock CROSS JOIN stock LEFT JOIN (SELECT * FROM held UNION ALL SELECT * FROM granted) AS b ON true
;
-- renew
WITH clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
),
b AS MATERIALIZED (
	SELECT * FROM "traceflake_leases" WHERE node = $1 FOR UPDATE
), written AS (
	UPDATE "traceflake_leases" AS t SET granted_until = to_timestamp($5::bigint), version = t.version + 1
	FROM b, clock
	WHERE t.node = b.node AND b.nodes = $2 AND b.holder = $3 AND b.version = $4 AND b.granted_until < to_timestamp($5::bigint) AND $6::bigint <= clock.now + $7::bigint
	RETURNING t.node
)
SELECT clock.now, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), EXISTS (SELECT FROM written), b.node, b.nodes, b.version, b.holder,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint FROM clock, b
;
-- release
WITH clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
),
b AS MATERIALIZED (
	SELECT * FROM "traceflake_leases" WHERE node = $1 FOR UPDATE
), written AS (
	UPDATE "traceflake_leases" AS t SET granted_until = least(b.granted_until, greatest(b.granted_from, to_timestamp($5::bigint))),
		holder = NULL, version = t.version + 1
	FROM b
	WHERE t.node = b.node AND b.nodes = $2 AND b.holder = $3 AND b.version = $4
	RETURNING t.node
)
SELECT clock.now, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), EXISTS (SELECT FROM written), b.node, b.nodes, b.version, b.holder,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint FROM clock, b
;
-- get
WITH clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
),
b AS MATERIALIZED (
	SELECT * FROM "traceflake_leases" WHERE node = $1 FOR UPDATE
)
SELECT clock.now, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), true, b.node, b.nodes, b.version, b.holder,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint FROM clock, b
;
-- list
SELECT 0::bigint, '', true, b.node, b.nodes, b.version, b.holder,
	ceil(extract(epoch FROM b.granted_from))::bigint,
	ceil(extract(epoch FROM nullif(b.granted_until, '-infinity')))::bigint FROM "traceflake_leases" AS b
WHERE version > 0 AND node BETWEEN $1 AND $2 ORDER BY node
;
-- raise
WITH clock AS MATERIALIZED (
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now
),
written AS (
	UPDATE "traceflake_leases" SET granted_until = greatest(granted_until, to_timestamp($1::bigint)),
		holder = NULL, version = version + 1
	WHERE node BETWEEN $2 AND $3
	RETURNING node
)
SELECT clock.now, set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), (SELECT count(*) FROM written) = $4::bigint,
	NULL::integer, NULL::integer, NULL::bigint, NULL, NULL::bigint, NULL::bigint FROM clock
;
