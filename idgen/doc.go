// Package idgen generates OpenTelemetry trace and span IDs that sort by time and are unique.
//
// Plug it into the SDK with one line:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
//
// The first 64 bits of a trace ID, the clear half, are the millisecond and a number that counts up
// within it. The other 64 bits, the low half, and a span ID are encrypted Randflake IDs: without
// the secret their bits are uniform and random. Package traceid describes the layout.
//
// Without options a generator encrypts increasing numbers under a random secret of its own. So
// low halves and span IDs never repeat within the process, and collide with those of other
// processes only as 64-bit random numbers do. With [WithSource] and a source whose nodes are leased
// under one secret, IDs are unique in the whole fleet, and anyone with the secret can decode and
// verify them.
//
// Generating an ID allocates nothing, returns no error, and never waits for I/O or an error
// handler. If the source refuses, the bits after the clear half are random, and the call is
// counted. While the clock is outside the range of trace IDs, 2020 to 2089, trace IDs are entirely
// random. The beginning and the end of such an outage are each reported once to [otel.Handle], in a
// separate goroutine.
//
// docs/generator.md describes order, time, collisions, cost, tests and what happens to copies of a
// process; docs/metrics.md describes the metrics.
package idgen
