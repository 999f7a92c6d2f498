// Package lookup tests the module's package lookup on a real Jaeger, with
//
//	make jaeger
//
// which builds Jaeger first. Its tests have the build tag jaeger: without a Jaeger they do not exist,
// so that no other run can skip them.
package lookup
