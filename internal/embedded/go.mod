module github.com/traceflake/traceflake/internal/embedded

go 1.26.0
