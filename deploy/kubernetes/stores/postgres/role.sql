-- A role with its own schema, in which `traceflake lease create` creates the tables:
--	psql -v password=… -f role.sql 'postgres://admin@host/db'
CREATE ROLE traceflake LOGIN PASSWORD :'password';
CREATE SCHEMA traceflake AUTHORIZATION traceflake;
