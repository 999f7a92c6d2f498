package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
	"github.com/traceflake/traceflake/sparx64"
)

// batch is how many IDs, or blocks, are made at once where many are.
const batch = 256

// generators are what implements the SDK's interface.
type generators struct {
	private, leased, sdk, xray, uptrace sdktrace.IDGenerator

	mine   []*idgen.Generator
	keeper *lease.Keeper
}

func newGenerators(ctx context.Context) (*generators, error) {
	g := new(generators)
	var err error
	if g.sdk, err = sdkDefault(); err != nil {
		return nil, err
	}
	if g.uptrace, err = uptraceGenerator(ctx); err != nil {
		return nil, err
	}
	g.xray = xrayGenerator()
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	// One block of all nodes: a benchmark asks for more IDs in a second than 8
	// nodes have, and what happens then is not what is measured.
	nodes := driver.NodeRange{Nodes: randflake.MaxNode + 1, BlockSize: randflake.MaxNode + 1}
	if g.keeper, err = lease.Start(ctx, driver.NewMemory(driver.WithNodeRange(nodes)), codec, lease.WithTTL(time.Hour)); err != nil {
		return nil, err
	}
	if err := g.keeper.Ready(ctx); err != nil {
		return nil, err
	}
	g.private = g.add(idgen.New())
	g.leased = g.add(idgen.New(idgen.WithSource(g.keeper)))
	return g, nil
}

func (g *generators) add(mine *idgen.Generator) *idgen.Generator {
	g.mine = append(g.mine, mine)
	return mine
}

// close ends the keeper. The error says that some IDs were random ones of the
// fallback: then the wrong thing was measured.
func (g *generators) close(ctx context.Context) error {
	var n int64
	for _, mine := range g.mine {
		n += mine.Fallbacks()
	}
	err := g.keeper.Close(ctx)
	if n > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls were answered by the fallback: the figures are not of the generator", n))
	}
	return err
}

func newCodec() (*randflake.Codec, error) {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	return randflake.NewCodec(secret[:])
}

func newIDs(name, gen string, goroutines int, g sdktrace.IDGenerator) subject {
	ctx := context.Background()
	return subject{name: name, gen: gen, goroutines: goroutines, run: func(n int) {
		for range n {
			g.NewIDs(ctx)
		}
	}}
}

func newSpanID(name, gen string, goroutines int, g sdktrace.IDGenerator) subject {
	ctx := context.Background()
	return subject{name: name, gen: gen, goroutines: goroutines, run: func(n int) {
		for range n {
			g.NewSpanID(ctx, trace.TraceID{})
		}
	}}
}

// several is one goroutine, and as many as run at once.
func several() []int {
	if runtime.GOMAXPROCS(0) == 1 {
		return []int{1}
	}
	return []int{1, runtime.GOMAXPROCS(0)}
}

// ids are the generators, through the interface that the SDK uses.
func (g *generators) ids() (s []subject) {
	for _, n := range several() {
		s = append(s,
			newIDs("NewIDs", "default", n, g.sdk),
			newIDs("NewIDs", "traceflake", n, g.private),
			newIDs("NewIDs", "leased", n, g.leased),
			newIDs("NewIDs", "xray", n, g.xray),
			newIDs("NewIDs", "uptrace", n, g.uptrace),
			newSpanID("NewSpanID", "default", n, g.sdk),
			newSpanID("NewSpanID", "traceflake", n, g.private),
			newSpanID("NewSpanID", "leased", n, g.leased),
			newSpanID("NewSpanID", "xray", n, g.xray),
			newSpanID("NewSpanID", "uptrace", n, g.uptrace),
		)
	}
	return s
}

func oneDraw() subject {
	return subject{name: "Draw", gen: "rand", goroutines: 1, run: func(n int) {
		var x uint64
		for range n {
			x ^= mathrand.Uint64()
		}
		runtime.KeepAlive(x) // or the compiler might leave the loop out
	}}
}

// parts are what a generator is made of, beside one draw of a random number.
func parts() ([]subject, error) {
	var key [sparx64.KeySize]byte
	_, _ = rand.Read(key[:]) // never fails
	cipher, err := sparx64.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	all := randflake.Lease{Nodes: randflake.MaxNode + 1, Start: time.Unix(randflake.Epoch, 0), End: time.Unix(randflake.EndOfLife, 0)}
	g, err := randflake.NewGenerator(codec, all)
	if err != nil {
		return nil, err
	}
	blocks := make([]uint64, batch)
	ids := make([]randflake.ID, batch)
	return []subject{
		oneDraw(),
		{name: "EncryptUint64s", gen: "sparx64", goroutines: 1, per: batch, run: func(n int) {
			for range n {
				cipher.EncryptUint64s(blocks, blocks)
			}
		}},
		{name: "Fill", gen: "randflake", goroutines: 1, per: batch, run: func(n int) {
			for range n {
				if _, _, err := g.Fill(ids); err != nil {
					panic(err) // the lease is over everything
				}
			}
		}},
		{name: "Next", gen: "randflake", goroutines: 1, run: func(n int) {
			for range n {
				if _, err := g.Next(); err != nil {
					panic(err) // the lease is over everything
				}
			}
		}},
	}, nil
}

// spans are whole spans, with the SDK's default generator, with ours, and with
// the default once more: by how much that differs from itself, nobody can tell.
func (g *generators) spans() (s []subject) {
	for _, sampled := range []struct {
		name    string
		sampler sdktrace.Sampler
	}{{"Never", sdktrace.NeverSample()}, {"Always", sdktrace.AlwaysSample()}} {
		def := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampled.sampler)).Tracer("bench")
		our := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampled.sampler), sdktrace.WithIDGenerator(g.private)).Tracer("bench")
		again := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampled.sampler)).Tracer("bench")
		root := context.Background()
		s = append(s,
			startEnd("RootSpan"+sampled.name, "default", def, root),
			startEnd("RootSpan"+sampled.name, "traceflake", our, root),
			startEnd("RootSpan"+sampled.name, "again", again, root))
		child, _ := our.Start(root, "parent") //nolint:spancheck // it is the parent of all
		s = append(s,
			startEnd("ChildSpan"+sampled.name, "default", def, child),
			startEnd("ChildSpan"+sampled.name, "traceflake", our, child),
			startEnd("ChildSpan"+sampled.name, "again", again, child))
	}
	return s
}

func startEnd(name, gen string, t trace.Tracer, ctx context.Context) subject { //nolint:revive // the subject's name comes first
	return subject{name: name, gen: gen, goroutines: 1, run: func(n int) {
		for range n {
			_, span := t.Start(ctx, "span")
			span.End()
		}
	}}
}

// rivalIDs are one ID each.
func rivalIDs(rivals []rival) (s []subject) {
	for _, r := range rivals {
		s = append(s, subject{name: "ID", gen: r.gen, goroutines: 1, run: r.run})
	}
	return s
}

// crowd are the goroutines of the throughput curve.
var crowd = []int{1, 2, 4, 8, 16, 32, 64}

// crowds are the same generators with more and more goroutines.
func (g *generators) crowds() (s []subject) {
	for _, n := range crowd {
		s = append(s,
			newIDs("CrowdNewIDs", "default", n, g.sdk),
			newIDs("CrowdNewIDs", "traceflake", n, g.private),
			newIDs("CrowdNewIDs", "xray", n, g.xray),
			newSpanID("CrowdNewSpanID", "default", n, g.sdk),
			newSpanID("CrowdNewSpanID", "traceflake", n, g.private),
		)
	}
	return s
}

// shared are the same work on something shared by all goroutines and on one
// for each: generators, and words that are counted up.
func (g *generators) shared() (s []subject) {
	n := runtime.GOMAXPROCS(0)
	own := make(chan sdktrace.IDGenerator, n)
	words := make(chan *padded, n)
	for range n {
		own <- g.add(idgen.New())
		words <- new(padded)
	}
	var word padded
	ctx := context.Background()
	return []subject{
		newIDs("SharedNewIDs", "shared", n, g.private),
		{name: "SharedNewIDs", gen: "own", goroutines: n, run: func(n int) {
			g := <-own
			newIDs("", "", 1, g).run(n)
			own <- g
		}},
		newSpanID("SharedNewSpanID", "shared", n, g.private),
		{name: "SharedNewSpanID", gen: "own", goroutines: n, run: func(n int) {
			g := <-own
			for range n {
				g.NewSpanID(ctx, trace.TraceID{})
			}
			own <- g
		}},
		// What the default would cost with such a word beside it.
		{name: "SharedDefaultAdd", gen: "shared", goroutines: n, run: func(n int) { word.countIDs(n, g.sdk) }},
		{name: "SharedDefaultAdd", gen: "own", goroutines: n, run: func(n int) {
			w := <-words
			w.countIDs(n, g.sdk)
			words <- w
		}},
		{name: "SharedAdd", gen: "shared", goroutines: n, run: word.count},
		{name: "SharedAdd", gen: "own", goroutines: n, run: func(n int) {
			w := <-words
			w.count(n)
			words <- w
		}},
	}
}

// padded is a word with two cache lines to itself.
type padded struct {
	_    [128]byte
	word atomic.Uint64
	_    [120]byte
}

func (p *padded) count(n int) {
	for range n {
		p.word.Add(1)
	}
}

func (p *padded) countIDs(n int, g sdktrace.IDGenerator) {
	ctx := context.Background()
	for range n {
		g.NewIDs(ctx)
		p.word.Add(1)
	}
}
