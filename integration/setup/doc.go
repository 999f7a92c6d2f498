// Package setup has recipes for programs that are configured by the environment or by
// OpenTelemetry's configuration file.
package setup
