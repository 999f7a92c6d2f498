// Package lookup tests the command's proxy with gRPC, TLS and signals, and package lookup on a real
// Jaeger, with
//
//	make jaeger
//
// which builds Jaeger first. Those tests have the build tag jaeger: without a Jaeger they do not
// exist, so that no other run can skip them.
package lookup
