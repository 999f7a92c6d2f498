module github.com/traceflake/traceflake/contrib/postgres

go 1.26.0
