module github.com/traceflake/traceflake/examples/otelhttp

go 1.26.0
