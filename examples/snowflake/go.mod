module github.com/traceflake/traceflake/examples/snowflake

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/traceflake/traceflake v0.1.0
)

require (
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	go.opentelemetry.io/otel v1.32.0 // indirect
	go.opentelemetry.io/otel/metric v1.32.0 // indirect
	go.opentelemetry.io/otel/trace v1.32.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
