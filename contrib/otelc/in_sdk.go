//go:build ignore

package trace

import "context"

var (
	traceflakeGenerator func() IDGenerator
	traceflakeShutdown  func(context.Context, IDGenerator)
)
