DO $traceflake$ BEGIN
	PERFORM pg_advisory_xact_lock(8390876135275523179);
	IF to_regclass('"traceflake_leases"') IS NULL THEN
		CREATE TABLE "traceflake_leases" (
			node          integer PRIMARY KEY,
			nodes         integer NOT NULL CHECK (nodes = 32768 AND node % 32768 = 0),
			granted_from  timestamptz,
			granted_until timestamptz NOT NULL DEFAULT '-infinity',
			holder        text UNIQUE,
			version       bigint NOT NULL DEFAULT 0
		);
		CREATE INDEX ON "traceflake_leases" (granted_until);
		INSERT INTO "traceflake_leases" (node, nodes) SELECT n, 32768 FROM generate_series(0, 131071, 32768) AS n;
		COMMENT ON TABLE "traceflake_leases" IS 'traceflake leases, schema 1, blocks of 32768 nodes';
	END IF;
EXCEPTION WHEN duplicate_table THEN
	NULL;
END $traceflake$;
UPDATE traceflake_leases SET granted_from = '2026-01-02 03:04:05+00', granted_until = '2026-01-02 03:09:05+00', holder = 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', version = 2 WHERE node = 0;
UPDATE traceflake_leases SET granted_from = '2026-01-02 03:04:05+00', granted_until = '2026-01-02 03:04:15+00', holder = NULL, version = 2 WHERE node = 32768;
UPDATE traceflake_leases SET granted_from = '2026-01-02 03:04:05+00', granted_until = '2026-01-02 03:05:05+00', holder = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', version = 1 WHERE node = 98304;
