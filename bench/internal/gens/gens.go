// Package gens makes the measured generators and the loops over them.
//
// The loops call sdktrace.IDGenerator and do nothing else. The same machine code calls all
// generators; it is entered again for each turn.
package gens

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"time"
	"unsafe"

	"go.opentelemetry.io/contrib/propagators/aws/xray"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/bench/internal/turns"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The names of generators in results. Again is the SDK's default a second time.
const (
	Default    = "SDK default"
	Again      = "SDK default again"
	Traceflake = "traceflake"
	Leased     = "traceflake leased"
	XRay       = "X-Ray"
)

// Set holds one new generator of each kind.
type Set struct {
	of     map[string]sdktrace.IDGenerator
	mine   []*idgen.Generator
	keeper *lease.Keeper
}

// New makes a set. The caller must close it.
func New(ctx context.Context) (*Set, error) {
	def, err := Inside(sdktrace.NewTracerProvider())
	if err != nil {
		return nil, err
	}
	codec, err := Codec()
	if err != nil {
		return nil, err
	}
	// One block of all nodes: a flat-out loop needs more IDs in a second than 8 nodes have, and
	// that case is not measured here.
	nodes := driver.NodeRange{Nodes: randflake.MaxNode + 1, BlockSize: randflake.MaxNode + 1}
	keeper, err := lease.Start(ctx, driver.NewMemory(driver.WithNodeRange(nodes)), codec, lease.WithTTL(time.Hour))
	if err != nil {
		return nil, err
	}
	if err := keeper.Ready(ctx); err != nil {
		return nil, errors.Join(err, keeper.Close(ctx))
	}
	private, leased := idgen.New(), idgen.New(idgen.WithSource(keeper))
	return &Set{
		of: map[string]sdktrace.IDGenerator{
			Default: def, Again: def, Traceflake: private, Leased: leased, XRay: xray.NewIDGenerator(),
		},
		mine: []*idgen.Generator{private, leased}, keeper: keeper,
	}, nil
}

// Of returns the generator with that name.
func (s *Set) Of(name string) sdktrace.IDGenerator { return s.of[name] }

// Close ends the lease. It fails if some IDs were random IDs of the fallback: then the figures are
// wrong.
func (s *Set) Close(ctx context.Context) error {
	var n int64
	for _, g := range s.mine {
		n += g.Fallbacks()
	}
	err := s.keeper.Close(ctx)
	if n > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls got random IDs of the fallback: the figures are not the generator's", n))
	}
	return err
}

// Codec returns a codec with a random secret.
func Codec() (*randflake.Codec, error) {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return randflake.NewCodec(secret[:])
}

// Inside returns the generator inside a provider. The SDK does not export its default generator,
// and a copy might differ.
func Inside(p *sdktrace.TracerProvider) (sdktrace.IDGenerator, error) {
	field := reflect.ValueOf(p).Elem().FieldByName("idGenerator")
	if !field.IsValid() || field.Type() != reflect.TypeFor[sdktrace.IDGenerator]() {
		return nil, fmt.Errorf("this version of the SDK has no TracerProvider.idGenerator: %T", p)
	}
	return *(*sdktrace.IDGenerator)(unsafe.Pointer(field.UnsafeAddr())), nil
}

// An Operation is one of the two methods of the SDK's interface.
type Operation string

// The methods of the SDK's interface.
const (
	NewIDs    Operation = "NewIDs"
	NewSpanID Operation = "NewSpanID"
)

// Subjects returns the named generators, to be measured with one operation.
func (s *Set) Subjects(op Operation, names ...string) []turns.Subject {
	loop := loopNewIDs
	if op == NewSpanID {
		loop = loopNewSpanID
	}
	subjects := make([]turns.Subject, len(names))
	for i, name := range names {
		g := s.of[name]
		subjects[i] = turns.Subject{Name: name, Run: func(n int) { loop(g, n) }}
	}
	return subjects
}

//go:noinline
func loopNewIDs(g sdktrace.IDGenerator, n int) {
	ctx := context.Background()
	for range n {
		g.NewIDs(ctx)
	}
}

//go:noinline
func loopNewSpanID(g sdktrace.IDGenerator, n int) {
	ctx := context.Background()
	var id trace.TraceID
	for range n {
		g.NewSpanID(ctx, id)
	}
}

// Crowds returns the numbers of goroutines: one, and one per CPU if there are several.
func Crowds() []int {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}
