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
// The clear half is for sorting. It shows anyone who sees the ID when the trace
// began, and roughly how many traces began before it in that millisecond. The
// low half is for uniqueness and for sampling: samplers that read the last
// seven or eight bytes, as Go's and the collector's do, find uniform bits
// there. The ratio samplers of .NET and C++ read the first eight bytes, which
// hold the time: they keep all of our traces or none, so sample elsewhere.
//
// # Order
//
// Trace IDs of one generator sort by millisecond. Within a millisecond each
// processor (a P of Go's scheduler) takes runs of the sequence, so that most
// calls write no memory that another processor writes. In each millisecond a
// processor's runs have 1, 1, 2, 4, 8 … 128 numbers, the rest of which is given
// up when the processor makes new low halves. The exact guarantees are:
//
//   - A goroutine that stays on its processor gets strictly increasing IDs; not
//     so under the build tag nolinkname, with which it may be preempted in the
//     middle of a call.
//   - Across processors, IDs of the same millisecond are in the order of their
//     runs: each run follows all those taken before it. So an ID can sort
//     before one that was made up to a millisecond earlier on another
//     processor; a processor's first two IDs of a millisecond are runs of their
//     own and sort after all runs taken until then. The same holds for a
//     goroutine that moves to another processor.
//   - Processors may disagree by some microseconds on when a millisecond begins.
//   - When the 2^23 numbers of a millisecond are used up, the sequence runs into
//     the next millisecond.
//   - When the clock steps back by less than two seconds, IDs continue from the
//     latest millisecond until the clock has caught up. After a larger step
//     they follow the clock, and the order starts again; such steps are
//     counted.
//
// # Time
//
// An ID's millisecond is within one of the clock's. The clock is read together
// with the processor's time-stamp counter, which is trusted for 16 ms: on amd64
// if the processor says that it is invariant, and on arm64. So a step of the
// clock, or an error of the counter while the machine is suspended, goes
// unnoticed for at most 17 ms of the counter's time. A counter that disagrees
// with the clock is never used again; one that has stopped is noticed when the
// timer reads the clock, once a second. The clock is read for each trace ID on
// other architectures, and under the build tag purego.
//
// A generator has one timer, which runs once a second while it is used, and no
// goroutine. [Generator.Close] stops it.
//
// # What makes the IDs unique
//
// Without configuration, a generator draws a secret for this process alone. Low
// halves and span IDs then never repeat within the process, and collide with
// those of other processes only as 64-bit random numbers would; two trace IDs
// are the same only if their low halves collide in the same millisecond at the
// same place in the sequence. When the clock steps back by more than two
// seconds the process draws another secret, as if it were another process.
//
// With [WithSource] and a source whose nodes are leased under one secret for
// the whole fleet, no ID of the fleet repeats, and holders of the secret can
// decode and verify them.
//
// # Cloned machines
//
// If Linux's vmclock reports that this machine was restored from a snapshot,
// the ready IDs are discarded before another is handed out, a
// zero-configuration generator draws a new secret, and the restore is reported
// once to [otel.Handle] and counted. The metric traceflake.id.restores names
// the mechanism that detects restores here. If it is off, nothing detects them,
// and without configuration both copies make the same IDs. A source given by
// WithSource handles clones itself, as a lease.Keeper does.
//
// The kernel is notified of a restore a moment later than this process and may
// draw the same secret in every copy until then. So the secret is drawn once
// more after a second; within that second copies may make the same IDs.
//
// # When the source fails
//
// An ID generator cannot return an error and must not wait. If the source
// refuses, the ID is made of random bits (after the clear half, which continues
// as usual) and counted. The change is reported once to [otel.Handle], and so
// is the return to the source.
//
// # Time in tests
//
// Use [WithClock] to give a generator a clock that the test moves. With
// testing/synctest, make the generator inside the bubble, since its timers
// belong there.
//
// # Metrics
//
//	name                       kind     unit       attributes                     what
//	traceflake.id.created      counter  {id}       traceflake.id.kind=trace|span  IDs of the source, without those of each CPU's current batch, up to 256
//	traceflake.id.fallbacks    counter  {call}     error.type=lease_expired|...   calls served without the source
//	traceflake.id.clock_steps  counter  {step}                                    steps of the clock back by more than 2 s
//	traceflake.id.restores     counter  {restore}  traceflake.vmclock=off|...     restores of this machine from a snapshot
//	traceflake.id.borrowed     gauge    s                                         by how much the newest batch ran ahead of the clock
//
// The values of traceflake.vmclock are off, generation_counter, which reports
// restores, and disruption_marker, which also reports live migrations. The
// values of error.type are no_lease, before_epoch, lease_not_started,
// lease_expired, clock_behind, exhausted, sealed, end_of_life,
// clock_out_of_range, and _OTHER for other errors. Every series exists from the
// start, at 0.
package idgen
