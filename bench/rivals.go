// Package bench measures IDs with Go benchmarks, whose sub-benchmarks benchstat compares:
//
//	go test -bench 'NewIDs/rate=flat' -cpu 1,2,4,8,16 -count 10 | tee ids.txt
//	benchstat -col /gen ids.txt
//
// On a machine with other load, let the benchmarks take turns: ./run starts each again and again
// for some milliseconds, and report compares the generators within each turn.
//
//	make bench            # everything, in about 15 minutes: RESULTS.md
//	make bench-check      # only what has a target, in about 6 minutes; fails if one is missed
//	bench/run cpus        # NewIDs and NewSpanID on 1, 2, 4, 8, 16 CPUs, to standard output
//
// NewIDs and NewSpanID measure the cost of an ID at the rates of real services, Span that of a
// root span, Rival that of other kinds of IDs. The folder clickhouse has its own program.
package bench

import "strings"

// Rival is another way to generate IDs, and its properties. A test compares Bits with its IDs.
type Rival struct{ Who, Unique, Ordered, Hidden, Bits, Decodes string }

// Benchmark returns the name of the sub-benchmark of BenchmarkRival.
func (r Rival) Benchmark() string {
	return "id=" + strings.NewReplacer(" ", "-", "/", ".").Replace(r.Who)
}

// Rivals are OpenTelemetry generators, whose IDs are a trace ID and a span ID each, and libraries
// for IDs in general.
var Rivals = []Rival{
	{"traceflake", "in a process: always; in a fleet: always with leases, else by chance: 64 " +
		"bits for a millisecond and sequence", "milliseconds", "low 64 bits", "128 + 64",
		"millisecond; with the secret second, node, sequence"},
	{"OpenTelemetry SDK", "by chance: 128 random bits", "no", "all", "128 + 64", "nothing"},
	{"contrib X-Ray (deprecated)", "by chance: 96 random bits per second", "seconds",
		"all but the time", "128 + 64", "second"},
	{"uptrace-go", "by chance: 64 bits of math/rand per nanosecond", "nanoseconds",
		"nothing: math/rand is predictable from its output", "128 + 64", "nanosecond"},
	{"google/uuid v4", "by chance: 122 random bits", "no", "all", "128", "nothing"},
	{"google/uuid v7", "by chance: 62 random bits per 256 ns", "strictly in a process",
		"all but the time", "128", "millisecond"},
	{"gofrs/uuid v1", "by MAC address, time, 16-bit clock sequence",
		"no: the time's low bits come first", "nothing", "128", "100 ns, machine"},
	{"gofrs/uuid v6", "by chance: 62 random bits per 100 ns", "100 ns", "all but the time", "128",
		"100 ns"},
	{"gofrs/uuid v7", "by chance: 62 random bits, and a 12-bit counter", "strictly in a process",
		"all but the time", "128", "millisecond"},
	{"oklog/ulid", "by chance: 80 bits of math/rand", "strictly in a process",
		"nothing: math/rand, seeded by the clock", "128", "millisecond"},
	{"segmentio/ksuid", "by chance: 128 random bits", "seconds", "all but the time", "160",
		"second"},
	{"rs/xid", "by 24-bit hash of the machine, 16 bits of the process ID, 24-bit counter",
		"seconds; strictly in a process until the counter wraps", "nothing", "96",
		"second, machine, process, counter"},
	{"bwmarrin/snowflake", "by node number, set by hand; waits after 4096 a millisecond",
		"strictly in a process", "nothing", "63", "millisecond, node, sequence"},
	{"sony/sonyflake",
		"by machine number, set by hand or from the IP address; sleeps after 256 in 10 ms",
		"strictly in a process", "nothing", "63", "10 ms, machine, sequence"},
}
