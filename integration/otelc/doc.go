// Package otelc tests the rules of module otelc on copies of the packages that they change: the
// tool otelc is not published as a Go module.
package otelc
