//go:build ignore

package trace

var traceflakeGenerator func() IDGenerator
