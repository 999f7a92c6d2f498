// Package tracing has only tests: traces through services that use OpenTelemetry's other
// libraries, such as otelhttp and autoprop, which the root module does not require.
package tracing
