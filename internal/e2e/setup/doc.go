// Package setup holds the recipes for starting a program whose settings come
// from the environment or from OpenTelemetry's configuration file.
package setup
