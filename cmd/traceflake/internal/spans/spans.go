// Package spans reads the spans of a trace by its ID from a server, as OTLP. It is apart from
// waterfall, which only draws them, and from lookup, which users import without OTLP.
package spans

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/trace"
)

// ErrPartial is returned if the place has more spans of a trace than it returns.
var ErrPartial = errors.New("the trace is not complete")

// Source is a place where spans are stored.
type Source interface {
	// Trace calls each for all spans of a trace, in parts that are valid during the call. It calls
	// it never if there is no such trace, which is no error. If the error wraps ErrPartial, it has
	// called each for the spans that were returned.
	Trace(ctx context.Context, id trace.TraceID, each func(ptrace.Traces) error) error
	// Logs is Trace for the log records of a trace. Only ClickHouse has some.
	Logs(ctx context.Context, id trace.TraceID, each func(plog.Logs) error) error
	// String says which place it is, without a password.
	String() string
}
