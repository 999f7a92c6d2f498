// Package idgen makes OpenTelemetry trace and span IDs that sort by time and
// are unique.
//
//	trace ID, 16 bytes, big-endian
//	 127                         87 86              64 63                                            0
//	+------------------------------+------------------+-----------------------------------------------+
//	| 41 bits: ms since 2020       | 23 bits sequence |  Randflake ID (64 bits, encrypted)            |
//	+------------------------------+------------------+-----------------------------------------------+
//	span ID, 8 bytes, big-endian: a Randflake ID
//
// Plug it into the SDK with one line:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
//
// The clear half is for sorting, and tells everybody who sees the ID when the
// trace began and how many began in that millisecond before it. Trace IDs of
// one generator strictly increase, also within a millisecond and when the
// clock steps back by less than two seconds. The low half is for uniqueness
// and for sampling: samplers that read the last seven or eight bytes, as Go's
// and the collector's do, find uniform bits there. The ratio samplers of .NET
// and C++ read the first eight bytes, which is the time: they keep all of our
// traces or none, so sample elsewhere.
//
// # What makes the IDs unique
//
// Zero configuration draws a secret for this process alone. Low halves and
// span IDs then never repeat within the process, and meet those of other
// processes only as random 64-bit numbers do; two trace IDs are the same only
// if that happens in the same millisecond at the same place in the sequence.
// A clock that steps back by more than two seconds makes the process draw
// another secret: what it made before is another process's then.
//
// With [WithSource] and a source whose nodes are leased under one secret for
// the whole fleet, no two IDs of the fleet are the same, and who holds the
// secret can decode and verify them.
//
// # What happens when that fails
//
// An ID generator cannot return an error and must not wait. When the source
// refuses, the ID at hand is made of random bits (behind the clear half, which
// goes on), counted, and the change reported once to [otel.Handle]; likewise
// when the source gives IDs again.
//
// # Time in tests
//
// Give a generator the clock that a test moves with [WithClock]. In a bubble of
// testing/synctest make the generator inside it, since its timers belong there.
//
// # Metrics
//
//	name                       kind     unit    attributes                         what
//	traceflake.id.created      counter  {id}    traceflake.id.kind=trace|span      IDs of the source, but for those of each CPU's batch in use, up to 256
//	traceflake.id.fallbacks    counter  {call}  error.type=lease_expired|...       calls answered without the source
//	traceflake.id.clock_steps  counter  {step}                                     steps of the clock back by more than 2 s
//	traceflake.id.borrowed     gauge    s                                          by how much the newest batch ran ahead of the clock
//
// The values of error.type are before_epoch, lease_not_started, lease_expired,
// clock_behind, exhausted, sealed, end_of_life, clock_out_of_range, and _OTHER
// for what another source says.
package idgen
