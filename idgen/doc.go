// Package idgen generates OpenTelemetry trace and span IDs that sort by time and are unique.
//
// Plug it into the SDK with one line:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
//
// The layout is in package traceid. The clear half of a trace ID shows everyone when the trace
// began, and about how many traces this process had begun in that millisecond. The low half, and a
// span ID, is a Randflake ID: without the secret its bits are uniform and random, as samplers need
// them that read the last seven bytes, as W3C recommends. The ratio samplers of .NET and C++ read
// the first eight bytes: they keep all of these traces or none, so sample elsewhere.
//
// # Uniqueness
//
// Without configuration, a generator draws a random secret and encrypts numbers that only grow. So
// low halves and span IDs never repeat within the process, and collide with those of others only as
// 64-bit random numbers would. If the clock steps back by more than two seconds, or the machine was
// restored, it draws another secret.
//
// Trace IDs of two processes are equal only if they have the same millisecond, the same place in
// their sequences and equal low halves. In a fleet in which r traces begin per second, that happens
// about 8.6e-4 * (r / 1e6)^2 times a year, or less: once in 1,200 years at a million a second (with
// UUIDv7, which has 74 random bits, once in 1.2 million years). If that is too often, use
// [WithSource] and a source whose nodes are leased under one secret for the whole fleet: no ID of
// the fleet repeats, and holders of the secret can decode and verify them.
//
// # Order and time
//
// Trace IDs of one generator sort by millisecond: that of the wall clock when the call began, or up
// to a quarter of a millisecond behind it. A step of the wall clock, or a suspend of the machine,
// is noticed after at most 250 ms; a slew that the monotonic clock does not share makes IDs wrong
// by at most the slew of 250 ms, 0.13 ms at NTP's 500 ppm.
//
//   - A goroutine that stays on its processor (a P of Go's scheduler) gets strictly increasing IDs.
//     Each processor takes runs of the millisecond's sequence, so an ID can sort before one that
//     another processor generated up to a millisecond earlier.
//   - When the 2^23 numbers of a millisecond are used up, the sequence runs into the next one.
//   - If the clock steps back by less than two seconds, IDs continue from the latest millisecond
//     until the clock has caught up. After a larger step they follow the clock, the order starts
//     again, and the step is counted.
//   - A span ID has the current second, if a timer that runs once a second is not late.
//     [Generator.Close] ends these timers: from then on the clock is read for each ID.
//
// # Cost
//
// Generating an ID never waits for I/O or an error handler, and allocates nothing. The rare calls
// that notice a restore, a new generation of the source or the beginning or end of an outage wait
// for each other for some microseconds. Each processor keeps up to 1024 IDs ready, in 8.5 KiB; the
// call after a batch is used up generates the next, in some microseconds (without the cipher's
// assembly some tens of them).
//
// # When the source fails
//
// If the source refuses, the ID consists of random bits after the clear half, which continues as
// usual, and is counted. The beginning and the end of such an outage are each reported once to
// [otel.Handle], in a goroutine of their own, so that an error handler may block. While the clock
// is outside the range of trace IDs, 2020 to 2089, trace IDs are entirely random.
//
// # Copies of a process
//
// If Linux's vmclock reports that this machine was restored from a snapshot, or if
// [Generator.OnRestore] is called, the IDs that are ready are discarded and the secret of zero
// configuration is drawn again; a source given by WithSource handles copies itself, as a
// lease.Keeper does. docs/clones.md says what remains if nothing reports the restore.
//
// # Tests
//
// Use [WithClock] to give a generator a clock that the test moves. With testing/synctest, create
// the generator inside the bubble, where its timer belongs, with idgen.WithClock(time.Now): the
// processor's counter does not follow the bubble's clock.
package idgen
