package bench

import (
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
)

// ids generates n IDs of a rival and returns the bytes of the last one.
type ids func(n int) []byte

func calls[T any](next func() T, bytes func(T) []byte) ids {
	return func(n int) []byte {
		var id T
		for range n {
			id = next()
		}
		return bytes(id)
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
	sony := must(sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) {
		return 1, nil
	}}))
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	all := map[string]ids{
		"google/uuid v4": calls(func() uuid.UUID { return must(uuid.NewRandom()) },
			func(u uuid.UUID) []byte { return u[:] }),
		"google/uuid v7": calls(func() uuid.UUID { return must(uuid.NewV7()) },
			func(u uuid.UUID) []byte { return u[:] }),
		"gofrs/uuid v1": calls(func() gofrs.UUID { return must(gofrs.NewV1()) }, gofrs.UUID.Bytes),
		"gofrs/uuid v6": calls(func() gofrs.UUID { return must(gofrs.NewV6()) }, gofrs.UUID.Bytes),
		"gofrs/uuid v7": calls(func() gofrs.UUID { return must(gofrs.NewV7()) }, gofrs.UUID.Bytes),
		"oklog/ulid":    calls(ulid.Make, ulid.ULID.Bytes),
		"segmentio/ksuid": calls(func() ksuid.KSUID { return must(ksuid.NewRandom()) },
			ksuid.KSUID.Bytes),
		"rs/xid": calls(xid.New, xid.ID.Bytes),
		"bwmarrin/snowflake": calls(node.Generate,
			func(id snowflake.ID) []byte { return number(uint64(id)) }),
		"sony/sonyflake": calls(func() uint64 { return must(sony.NextID()) }, number),
	}
	names := map[string]string{"traceflake": "traceflake", "sdk": "OpenTelemetry SDK",
		"xray": "contrib X-Ray (deprecated)", "uptrace": "uptrace-go"}
	for _, g := range append(newGenerators(tb), generator{"uptrace", up}) {
		all[names[g.name]] = func(n int) []byte {
			loopNewIDs(g.IDGenerator, n-1)
			id, _ := g.NewIDs(context.Background())
			return id[:]
		}
	}
	return all
}

// BenchmarkRival measures one goroutine flat out. bwmarrin/snowflake spins and sony/sonyflake
// sleeps once their sequence is used up: their time is their limit.
func BenchmarkRival(b *testing.B) {
	all := newRivals(b)
	for _, r := range Rivals {
		b.Run(r.Benchmark(), func(b *testing.B) {
			b.ReportAllocs()
			all[r.Who](b.N)
		})
	}
}

// The IDs of every rival have the size that the table says, and differ.
func TestRivals(t *testing.T) {
	all := newRivals(t)
	for _, r := range Rivals {
		const many = 2000
		seen := make(map[string]bool)
		for range many {
			id := all[r.Who](1)
			seen[string(id)] = true
			size, _, _ := strings.Cut(r.Bits, " ")
			if size != strconv.Itoa(8*len(id)) && (size != "63" || len(id) != 8 || id[0] > 127) {
				t.Errorf("%s: %x does not have %s bits", r.Who, id, r.Bits)
			}
		}
		if len(seen) != many {
			t.Errorf("%s: only %d of %d IDs differ", r.Who, len(seen), many)
		}
	}
}
