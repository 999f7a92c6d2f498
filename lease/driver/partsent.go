package driver

import "context"

// PartSent is called by the Write of an [Objects] that sends data over a network, after it has sent
// a part of the data. During a probe it returns when all concurrent writes have reached it,
// otherwise at once. A server that checks the condition when a write begins, not when it ends, then
// accepts all of them. Without PartSent, Versity's gateway 1.6.0, whose window is a millisecond or
// two, passed half of the probes.
func PartSent(ctx context.Context) {
	if meet, ok := ctx.Value(partSent{}).(func()); ok {
		meet()
	}
}

// WithPartSent returns a context with which [PartSent] calls f. The engine uses it for a probe.
func WithPartSent(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, partSent{}, f)
}

type partSent struct{}
