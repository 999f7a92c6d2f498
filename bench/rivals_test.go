package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"github.com/uptrace/uptrace-go/uptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// ids generates the IDs of a rival: some that are discarded, and the bytes of one more.
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // no random numbers, or no time
	}
	return v
}

// newRivals returns the IDs of each of Rivals by its name.
func newRivals(tb testing.TB) map[string]ids {
	tb.Helper()
	uptrace.ConfigureOpentelemetry(uptrace.WithDSN("http://nobody@127.0.0.1:1/1"),
		uptrace.WithMetricsEnabled(false), uptrace.WithLoggingEnabled(false))
	up := inside(tb, uptrace.TracerProvider())
	if err := uptrace.Shutdown(tb.Context()); err != nil { // it never sends anything
		tb.Fatal(err)
	}
	node := must(snowflake.NewNode(1))
	sony := must(sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }}))
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	all := map[string]ids{
		"google/uuid v4":     calls(func() uuid.UUID { return must(uuid.NewRandom()) }, func(u uuid.UUID) []byte { return u[:] }),
		"google/uuid v7":     calls(func() uuid.UUID { return must(uuid.NewV7()) }, func(u uuid.UUID) []byte { return u[:] }),
		"gofrs/uuid v1":      calls(func() gofrs.UUID { return must(gofrs.NewV1()) }, gofrs.UUID.Bytes),
		"gofrs/uuid v6":      calls(func() gofrs.UUID { return must(gofrs.NewV6()) }, gofrs.UUID.Bytes),
		"gofrs/uuid v7":      calls(func() gofrs.UUID { return must(gofrs.NewV7()) }, gofrs.UUID.Bytes),
		"oklog/ulid":         calls(ulid.Make, ulid.ULID.Bytes),
		"segmentio/ksuid":    calls(func() ksuid.KSUID { return must(ksuid.NewRandom()) }, ksuid.KSUID.Bytes),
		"rs/xid":             calls(xid.New, xid.ID.Bytes),
		"bwmarrin/snowflake": calls(node.Generate, func(id snowflake.ID) []byte { return number(uint64(id)) }),
		"sony/sonyflake":     calls(func() uint64 { return must(sony.NextID()) }, number),
	}
	names := map[string]string{"traceflake": "traceflake", "leased": "traceflake leased", "sdk": "OpenTelemetry SDK", "xray": "contrib X-Ray", "uptrace": "uptrace-go"}
	for _, g := range append(newGenerators(tb), generator{"uptrace", up}) {
		if name := names[g.name]; name != "" {
			all[name] = ids{func(n int) { loopNewIDs(g.IDGenerator, n) }, traceID(g)}
		}
	}
	return all
}

func traceID(g sdktrace.IDGenerator) func() []byte {
	return func() []byte {
		id, _ := g.NewIDs(context.Background())
		return id[:]
	}
}

// BenchmarkRival measures one goroutine flat out. bwmarrin/snowflake spins and sony/sonyflake
// sleeps once their sequence is used up: their time is their limit.
func BenchmarkRival(b *testing.B) {
	all := newRivals(b)
	for _, r := range Rivals {
		b.Run("id="+strings.ReplaceAll(strings.ReplaceAll(r.Who, " ", "-"), "/", "."), func(b *testing.B) {
			b.ReportAllocs()
			all[r.Who].run(b.N)
		})
	}
}

// Every rival does what the table says: the size, no duplicate, and the order. The first bytes are
// the time if IDs are ordered, unless they are ordered strictly.
func TestRivalsAreWhatTheTableSays(t *testing.T) {
	all := newRivals(t)
	// The number of bytes of time before random bits or a counter.
	timeBytes := map[string]int{
		"gofrs/uuid v6": 8, "segmentio/ksuid": 4, "contrib X-Ray": 4, "uptrace-go": 8,
		"traceflake": 5, "traceflake leased": 5,
	}
	for _, r := range Rivals {
		const many = 2000
		strictly, none, wraps := strings.Contains(r.Ordered, "strictly in a process"), strings.HasPrefix(r.Ordered, "no"), r.Who == "rs/xid"
		seen := make(map[string]bool)
		var last []byte
		back := 0
		for range many {
			id := all[r.Who].next()
			seen[string(id)] = true
			if size, _, _ := strings.Cut(r.Bits, " "); size != strconv.Itoa(8*len(id)) && (size != "63" || len(id) != 8 || id[0] > 127) {
				t.Errorf("%s: %x has not %s bits", r.Who, id, r.Bits)
			}
			first := id
			if n := timeBytes[r.Who]; n > 0 {
				first = id[:n]
			}
			if order := bytes.Compare(last, first); order > 0 || order == 0 && strictly {
				back++
			}
			last = first
		}
		if len(seen) != many {
			t.Errorf("%s: only %d of %d IDs differ", r.Who, len(seen), many)
		}
		if sorted := back == 0 || wraps && back == 1; !sorted && !none {
			t.Errorf("%s: %q, but %d of %d IDs do not follow the one before", r.Who, r.Ordered, back, many)
		} else if sorted && r.Ordered == "no" {
			t.Errorf("%s: sorts, although the table denies it", r.Who)
		}
	}
}
