// Package rivals answers: what do other ways to make IDs cost, and what do they guarantee?
//
// They are the OpenTelemetry generators that exist as Go modules, and libraries that make IDs for
// other uses. Tests check the size and order of IDs in the table.
package rivals

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"github.com/uptrace/uptrace-go/uptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/bench/internal/gens"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/internal/turns"
)

// rival is another way to make IDs, and its properties.
type rival struct {
	who     string
	unique  string
	ordered string
	hidden  string
	bits    string
	decodes string
	ids
	// limit is how many calls show the long-term cost of a rival that waits; 0 for one that never
	// waits.
	limit int
}

// ids makes the IDs of a rival: many that are discarded, and the bytes of one more.
type ids struct {
	run  func(n int)
	next func() []byte
}

func calls[T any](next func() T, bytes func(T) []byte) ids {
	return ids{
		run: func(n int) {
			for range n {
				next()
			}
		},
		next: func() []byte { return bytes(next()) },
	}
}

// uptraceGenerator returns uptrace-go's generator. It never sends anything.
func uptraceGenerator(ctx context.Context) (sdktrace.IDGenerator, error) {
	uptrace.ConfigureOpentelemetry(uptrace.WithDSN("http://nobody@127.0.0.1:1/1"),
		uptrace.WithMetricsEnabled(false), uptrace.WithLoggingEnabled(false))
	g, err := gens.Inside(uptrace.TracerProvider())
	if err != nil {
		return nil, err
	}
	return g, uptrace.Shutdown(ctx)
}

// generators returns those with the SDK's interface. A call makes a trace ID and a span ID.
func generators(ctx context.Context, set *gens.Set) ([]rival, error) {
	up, err := uptraceGenerator(ctx)
	if err != nil {
		return nil, err
	}
	ids := func(g sdktrace.IDGenerator) ids {
		return ids{
			run: func(n int) {
				for range n {
					g.NewIDs(ctx)
				}
			},
			next: func() []byte {
				id, _ := g.NewIDs(ctx)
				return id[:]
			},
		}
	}
	const bits = "128 + 64"
	return []rival{
		{
			who: "traceflake, zero configuration", unique: "in a process: always; between processes by chance: 64 bits for a millisecond and sequence",
			ordered: "milliseconds", hidden: "low 64 bits", bits: bits, decodes: "millisecond; with the secret second, node, sequence",
			ids: ids(set.Of(gens.Traceflake)),
		},
		{
			who: "traceflake, leased nodes", unique: "in a fleet: always, by leases",
			ordered: "milliseconds", hidden: "low 64 bits", bits: bits, decodes: "the same",
			ids: ids(set.Of(gens.Leased)),
		},
		{
			who: "OpenTelemetry SDK's default", unique: "by chance: 128 random bits",
			ordered: "no", hidden: "all", bits: bits, decodes: "nothing",
			ids: ids(set.Of(gens.Default)),
		},
		{
			who: "contrib's X-Ray generator", unique: "by chance: 96 random bits per second",
			ordered: "seconds", hidden: "all but the time", bits: bits, decodes: "second",
			ids: ids(set.Of(gens.XRay)),
		},
		{
			who: "uptrace-go", unique: "by chance: 64 bits of math/rand per nanosecond",
			ordered: "nanoseconds", hidden: "nothing: math/rand is predictable from its output", bits: bits, decodes: "nanosecond",
			ids: ids(up),
		},
	}, nil
}

// libraries returns libraries that make IDs for other uses than tracing.
func libraries() ([]rival, error) {
	node, err := snowflake.NewNode(1)
	if err != nil {
		return nil, err
	}
	sony, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	if err != nil {
		return nil, err
	}
	return []rival{
		{
			who: "google/uuid v4", unique: "by chance: 122 random bits",
			ordered: "no", hidden: "all", bits: "128", decodes: "nothing",
			ids: calls(func() uuid.UUID { return must(uuid.NewRandom()) }, func(u uuid.UUID) []byte { return u[:] }),
		},
		{
			who: "google/uuid v7", unique: "by chance: 62 random bits per 256 ns",
			ordered: "strictly in a process", hidden: "all but the time", bits: "128", decodes: "millisecond",
			ids: calls(func() uuid.UUID { return must(uuid.NewV7()) }, func(u uuid.UUID) []byte { return u[:] }),
		},
		{
			who: "gofrs/uuid v1", unique: "by MAC address, time, 16-bit clock sequence",
			ordered: "no: the time's low bits come first", hidden: "nothing", bits: "128", decodes: "100 ns, machine",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV1()) }, gofrs.UUID.Bytes),
		},
		{
			who: "gofrs/uuid v6", unique: "by chance: 62 random bits per 100 ns",
			ordered: "100 ns", hidden: "all but the time", bits: "128", decodes: "100 ns",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV6()) }, gofrs.UUID.Bytes),
		},
		{
			who: "gofrs/uuid v7", unique: "by chance: 62 random bits, and a 12-bit counter",
			ordered: "strictly in a process", hidden: "all but the time", bits: "128", decodes: "millisecond",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV7()) }, gofrs.UUID.Bytes),
		},
		{
			who: "oklog/ulid Make", unique: "by chance: 80 bits of math/rand",
			ordered: "strictly in a process", hidden: "nothing: math/rand, seeded by the clock", bits: "128", decodes: "millisecond",
			ids: calls(ulid.Make, ulid.ULID.Bytes),
		},
		{
			who: "segmentio/ksuid", unique: "by chance: 128 random bits",
			ordered: "seconds", hidden: "all but the time", bits: "160", decodes: "second",
			ids: calls(func() ksuid.KSUID { return must(ksuid.NewRandom()) }, ksuid.KSUID.Bytes),
		},
		{
			who: "rs/xid", unique: "by 24-bit hash of the machine, 16 bits of the process ID, 24-bit counter",
			ordered: "seconds; strictly in a process until the counter wraps", hidden: "nothing", bits: "96", decodes: "second, machine, process, counter",
			ids: calls(xid.New, xid.ID.Bytes),
		},
		{
			who: "bwmarrin/snowflake", unique: "by node number, set by hand; waits after 4096 a millisecond",
			ordered: "strictly in a process", hidden: "nothing", bits: "63", decodes: "millisecond, node, sequence",
			limit: 4096 * 64,
			ids:   calls(node.Generate, func(id snowflake.ID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }),
		},
		{
			who: "sony/sonyflake", unique: "by machine number, set by hand or from the IP address; sleeps after 256 in 10 ms",
			ordered: "strictly in a process", hidden: "nothing", bits: "63", decodes: "10 ms, machine, sequence",
			limit: 256 * 32,
			ids:   calls(func() uint64 { return must(sony.NextID()) }, func(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }),
		},
	}, nil
}

// must is for rivals that fail only if random numbers or the time are unavailable.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Cost is the cost of a rival's ID.
type Cost struct {
	rival
	ns, allocs float64
}

// Measure measures all rivals flat out in one goroutine.
func Measure(ctx context.Context, progress io.Writer, rounds int) ([]Cost, error) {
	set, err := gens.New(ctx)
	if err != nil {
		return nil, err
	}
	list, err := generators(ctx, set)
	if err != nil {
		return nil, err
	}
	others, err := libraries()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "rivals: %d of them\n", len(list)+len(others))
	list = append(list, others...)
	var subjects []turns.Subject
	for _, r := range list {
		if r.limit == 0 {
			subjects = append(subjects, turns.Subject{Name: r.who, Run: r.run})
		}
	}
	measured := turns.FlatOut(subjects, 1, rounds, 2*time.Millisecond)
	var costs []Cost
	for _, r := range list {
		c := Cost{rival: r, allocs: testing.AllocsPerRun(1000, func() { r.run(1) }), ns: measured.Ns(r.who)}
		if r.limit > 0 {
			start := time.Now()
			r.run(r.limit)
			c.ns = float64(time.Since(start)) / float64(r.limit)
		}
		costs = append(costs, c)
	}
	return costs, errors.Join(ctx.Err(), set.Close(ctx))
}

// Report returns the section of the results.
func Report(costs []Cost) string {
	rows := [][]string{{"generator", "unique", "sorts by", "hidden", "bits", "decodes to", "a call", "allocations"}}
	for _, c := range costs {
		rows = append(rows, []string{c.who, c.unique, c.ordered, c.hidden, c.bits, c.decodes, text.Ns(c.ns), fmt.Sprint(c.allocs)})
	}
	return `One call, one goroutine, flat out, medians. The first five make a trace ID and a span ID, the others one ID.
bwmarrin/snowflake spins and sony/sonyflake sleeps if more IDs are asked for than the sequence has: their time is
their limit.

` + text.Table(rows)
}
