package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"github.com/uptrace/uptrace-go/uptrace"
	"go.opentelemetry.io/contrib/propagators/aws/xray"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// rival is another way to make IDs, and what it gives.
type rival struct {
	gen     string // as subjects name it
	who     string
	unique  string
	ordered string
	hidden  string
	bits    string
	decodes string
	ids
}

// ids makes the IDs of a rival: many that are thrown away, and the bytes of one
// more.
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

// idGenerator returns the generator inside a provider. The SDK's default and
// uptrace's are not exported, and a copy of them would not be them.
func idGenerator(p *sdktrace.TracerProvider) (sdktrace.IDGenerator, error) {
	field := reflect.ValueOf(p).Elem().FieldByName("idGenerator")
	if !field.IsValid() || field.Type() != reflect.TypeFor[sdktrace.IDGenerator]() {
		return nil, fmt.Errorf("this version of the SDK has no TracerProvider.idGenerator: %T", p)
	}
	return *(*sdktrace.IDGenerator)(unsafe.Pointer(field.UnsafeAddr())), nil
}

// sdkDefault returns the SDK's default generator.
func sdkDefault() (sdktrace.IDGenerator, error) { return idGenerator(sdktrace.NewTracerProvider()) }

// uptraceGenerator returns uptrace-go's generator. Nothing is ever sent.
func uptraceGenerator(ctx context.Context) (sdktrace.IDGenerator, error) {
	uptrace.ConfigureOpentelemetry(uptrace.WithDSN("http://nobody@127.0.0.1:1/1"),
		uptrace.WithMetricsEnabled(false), uptrace.WithLoggingEnabled(false))
	g, err := idGenerator(uptrace.TracerProvider())
	if err != nil {
		return nil, err
	}
	return g, uptrace.Shutdown(ctx)
}

func xrayGenerator() sdktrace.IDGenerator { return xray.NewIDGenerator() }

// rivals are the libraries that make IDs for other uses than tracing.
func rivals() ([]rival, error) {
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
			gen: "google-v4", who: "google/uuid v4", unique: "by chance: 122 random bits",
			ordered: "no", hidden: "all", bits: "128", decodes: "nothing",
			ids: calls(func() uuid.UUID { return must(uuid.NewRandom()) }, func(u uuid.UUID) []byte { return u[:] }),
		},
		{
			gen: "google-v7", who: "google/uuid v7", unique: "by chance: 62 random bits for 256 ns",
			ordered: "strictly in a process", hidden: "all but the time", bits: "128", decodes: "millisecond",
			ids: calls(func() uuid.UUID { return must(uuid.NewV7()) }, func(u uuid.UUID) []byte { return u[:] }),
		},
		{
			gen: "gofrs-v1", who: "gofrs/uuid v1", unique: "by MAC address, time, 16-bit clock sequence",
			ordered: "no: the time's low bits come first", hidden: "nothing", bits: "128", decodes: "100 ns, machine",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV1()) }, gofrs.UUID.Bytes),
		},
		{
			gen: "gofrs-v6", who: "gofrs/uuid v6", unique: "by chance: 62 random bits for 100 ns",
			ordered: "100 ns", hidden: "all but the time", bits: "128", decodes: "100 ns",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV6()) }, gofrs.UUID.Bytes),
		},
		{
			gen: "gofrs-v7", who: "gofrs/uuid v7", unique: "by chance: 62 random bits, and a counter of 12",
			ordered: "strictly in a process", hidden: "all but the time", bits: "128", decodes: "millisecond",
			ids: calls(func() gofrs.UUID { return must(gofrs.NewV7()) }, gofrs.UUID.Bytes),
		},
		{
			gen: "ulid", who: "oklog/ulid Make", unique: "by chance: 80 bits of math/rand",
			ordered: "strictly in a process", hidden: "nothing: math/rand, seeded by the clock", bits: "128", decodes: "millisecond",
			ids: calls(ulid.Make, ulid.ULID.Bytes),
		},
		{
			gen: "ksuid", who: "segmentio/ksuid", unique: "by chance: 128 random bits",
			ordered: "seconds", hidden: "all but the time", bits: "160", decodes: "second",
			ids: calls(func() ksuid.KSUID { return must(ksuid.NewRandom()) }, ksuid.KSUID.Bytes),
		},
		{
			gen: "xid", who: "rs/xid", unique: "by 24-bit hash of the machine, 16 bits of the process ID, 24-bit counter",
			ordered: "seconds; strictly in a process, until the counter wraps", hidden: "nothing", bits: "96", decodes: "second, machine, process, counter",
			ids: calls(xid.New, xid.ID.Bytes),
		},
		{
			gen: "snowflake", who: "bwmarrin/snowflake", unique: "by node number, given by hand; waits after 4096 a millisecond",
			ordered: "strictly in a process", hidden: "nothing", bits: "63", decodes: "millisecond, node, sequence",
			ids: calls(node.Generate, func(id snowflake.ID) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }),
		},
		{
			gen: "sonyflake", who: "sony/sonyflake", unique: "by machine number, given by hand or the IP address's end; sleeps after 256 in 10 ms",
			ordered: "strictly in a process", hidden: "nothing", bits: "63", decodes: "10 ms, machine, sequence",
			ids: calls(func() uint64 { return must(sony.NextID()) }, func(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }),
		},
	}, nil
}

// must is for rivals that fail only without random numbers or time.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
