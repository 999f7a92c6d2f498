module github.com/traceflake/traceflake/internal/e2e

go 1.26.0
