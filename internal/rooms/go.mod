module github.com/traceflake/traceflake/internal/rooms

go 1.26.0
