-- A role and a schema of its own, in which the first process makes the table:
--	psql -v password=… -f role.sql 'postgres://admin@host/db'
CREATE ROLE traceflake LOGIN PASSWORD :'password';
CREATE SCHEMA traceflake AUTHORIZATION traceflake;
