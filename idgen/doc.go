// Package idgen generates OpenTelemetry trace and span IDs that sort by time and are unique.
//
// Plug it into the SDK with one line:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
//
// The layout is in package traceid. The first 64 bits, the clear half, are for sorting. They show
// everyone when the trace began, and its place in the sequence: about how many traces this process
// had begun in that millisecond. The low half is for uniqueness and sampling: without the secret
// its bits are uniform and random, as W3C Trace Context level 2 requires of the last seven bytes,
// which the samplers of Go and of the Collector read. The ratio samplers of .NET and C++ read the
// first eight bytes: they keep all of these traces or none, so sample elsewhere. A span ID is a
// Randflake ID, as the low half is.
//
// # Order
//
// Trace IDs of one generator sort by millisecond. Within a millisecond each processor (a P of Go's
// scheduler) takes runs of the sequence, of 1, 1, 2, 4, 8 … 128 numbers, so that most calls write
// no memory that another processor writes. The rest of a run is discarded when its millisecond
// ends, or when a goroutine that has generated a batch resumes on another processor.
//
//   - A goroutine that stays on its processor gets strictly increasing IDs.
//   - Across processors, and for a goroutine that moves to another one, IDs of one millisecond are
//     in the order of their runs. So an ID can sort before one that another processor generated up
//     to a millisecond earlier. A processor's first two IDs of a millisecond are runs of their own
//     and sort after all runs taken until then.
//   - Processors may disagree by a quarter of a millisecond on when a millisecond begins.
//   - When the 2^23 numbers of a millisecond are used up, the sequence runs into the next one.
//   - When the clock steps back by less than two seconds, IDs continue from the latest millisecond
//     until the clock has caught up. After a larger step they follow the clock, and the order
//     starts again; such steps are counted.
//
// # Time
//
// An ID's millisecond is that of the wall clock when the call began, or up to a quarter of a
// millisecond behind it. It is ahead of the clock only while the order is.
//
//   - Within 2^17 ticks of the processor's counter (50 µs at 2.6 GHz, 131 µs at 1 GHz; on arm64
//     within 2^10 ticks) the millisecond stays. The counter decides nothing else, and its rate does
//     not matter. A counter that does not move is not relied on, and no millisecond stays for
//     longer than its second, whatever the counter does. amd64 processors whose counter is not
//     invariant have none here, as have other architectures and the build tag purego.
//   - After that the monotonic clock moves the millisecond on, for up to 250 ms: then the wall
//     clock is read again. So a step of the wall clock, or a suspend of the machine, goes unnoticed
//     for at most 250 ms. A slew, if it does not apply to the monotonic clock too, as it does on
//     Linux, makes IDs wrong by at most the slew of 250 ms: 0.13 ms at NTP's 500 ppm.
//   - A process that was stopped knows the time when it continues.
//
// A span ID has no time of its own except the second in its Randflake ID, which is that of the
// current second, if a timer that runs once a second is not late. [Generator.Close] ends these
// timers: from then on the wall clock is read for each ID.
//
// # What may wait
//
// Generating an ID takes no lock that others hold for long, and never waits for I/O or for an error
// handler. Two rare events take a mutex: a restore of the machine or a new generation of the
// source, while a new secret is drawn; and the beginning and the end of an outage, while a report
// is queued. Calls that notice the same event wait for each other for some microseconds.
//
// # Memory
//
// Each processor that generates IDs keeps up to 1024 of them ready, in 8.5 KiB. In each second its
// first batch has 256 IDs, and each further one twice as many, so it discards at most 256 IDs more
// than it uses. The call after a batch is used up generates the next: with the cipher's assembly
// that takes some microseconds, without it some tens of them.
//
// # What makes the IDs unique
//
// Without configuration, a generator draws a random secret for this process alone and encrypts
// numbers that only grow. So low halves and span IDs never repeat within the process, and collide
// with those of other processes only as 64-bit random numbers would. When the clock steps back by
// more than two seconds, or the machine was restored, the generator draws another secret.
//
// Two trace IDs of different processes are equal only if the processes begin the traces in the same
// millisecond, at the same place in their sequences, and the 64-bit low halves collide. In a fleet
// in which r traces begin per second, that happens about 8.6e-4 * (r / 1e6)^2 times a year, or
// less: once in 1,200 years at a million a second, once in 12 years at ten million. By the same
// arithmetic UUIDv7, with 74 random bits, has an equal pair once in 1.2 million years at a million
// a second. Use leases if that is too often.
//
// With [WithSource] and a source whose nodes are leased under one secret for the whole fleet, no
// ID of the fleet repeats, and holders of the secret can decode and verify them.
//
// # Copies of a process
//
// If Linux's vmclock reports that this machine was restored from a snapshot, the ready IDs are
// discarded before another is handed out, a zero-configuration generator draws a new secret, and
// the restore is counted and reported once to [otel.Handle]. Elsewhere [Generator.OnRestore] does
// this. A source given by WithSource handles copies itself, as a lease.Keeper does.
//
// If nothing reports the restore, two copies without configuration generate the same IDs until the
// end of the second in which they were copied. From then on each begins every second at a random
// place of 2^34: if both reserve n IDs in a second, some of them are equal with probability n /
// 7.5e9. TestCopiesPart shows it; docs/clones.md lists what remains.
//
// # When the source fails
//
// If the source refuses, the ID consists of random bits (after the clear half, which continues as
// usual) and is counted. The beginning and the end of such an outage are each reported once to
// [otel.Handle], in a goroutine of their own, so that an error handler may block. While the clock
// is outside the range of trace IDs, 2020 to 2089, trace IDs are entirely random, which is counted
// and reported in the same way.
//
// # Time in tests
//
// Use [WithClock] to give a generator a clock that the test moves. With testing/synctest, create
// the generator inside the bubble, where its timer belongs, and give it the bubble's clock; the
// processor's counter does not follow it:
//
//	idgen.New(idgen.WithClock(time.Now))
//
// # Metrics
//
// docs/metrics.md lists them, with what to do about each. Every series exists from the start, at 0.
package idgen
