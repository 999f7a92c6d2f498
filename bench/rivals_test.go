package bench

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
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

// newRivals returns other ways to generate IDs: OpenTelemetry generators, and libraries for IDs in
// general. RESULTS.md has their properties.
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
	for _, g := range append(newGenerators(tb), generator{"uptrace-go", up}) {
		all[g.name] = func(n int) []byte {
			loopNewIDs(g.IDGenerator, n-1)
			id, _ := g.NewIDs(context.Background())
			return id[:]
		}
	}
	delete(all, "again")
	return all
}

// BenchmarkRival measures one goroutine flat out. bwmarrin/snowflake spins and sony/sonyflake
// sleeps once their sequence is used up: their time is their limit.
func BenchmarkRival(b *testing.B) {
	all := newRivals(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run("id="+strings.NewReplacer(" ", "-", "/", ".").Replace(name), func(b *testing.B) {
			b.ReportAllocs()
			all[name](b.N)
		})
	}
}
