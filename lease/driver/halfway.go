package driver

import "context"

// Halfway is called by the Write of an [Objects] that sends data over a network, after it has sent
// a part of the data. During a probe it returns when all concurrent writes have reached it,
// otherwise at once. A server that checks the condition when a write begins, not when it ends, then
// accepts all of them. Without Halfway, Versity's gateway 1.6.0, whose window is a millisecond or
// two, passed half of the probes.
func Halfway(ctx context.Context) {
	if meet, ok := ctx.Value(halfway{}).(func()); ok {
		meet()
	}
}

// WithHalfway returns a context with which [Halfway] calls f. The engine uses it for a probe.
func WithHalfway(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, halfway{}, f)
}

type halfway struct{}
