package bench

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"go.opentelemetry.io/contrib/propagators/aws/xray"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
)

// generator is a compared generator. The SDK's is compared twice, which shows the noise.
type generator struct {
	name string
	sdktrace.IDGenerator
}

// newGenerators returns a new generator of each kind. Their place in memory changes the results by
// a few percent, so each run has new ones. At the end it fails if an ID was a random fallback ID.
func newGenerators(tb testing.TB) []generator {
	tb.Helper()
	ours := idgen.New()
	tb.Cleanup(func() {
		if n := ours.Fallbacks(); n > 0 {
			tb.Errorf("%d calls got random IDs of the fallback: the figures are not the "+
				"generator's", n)
		}
	})
	sdk := inside(tb, sdktrace.NewTracerProvider())
	return []generator{{"sdk", sdk}, {"traceflake", ours}, {"again", sdk},
		{"xray", xray.NewIDGenerator()}}
}

// inside returns the generator inside a provider. The SDK does not export its default generator,
// and a copy might differ.
func inside(tb testing.TB, p *sdktrace.TracerProvider) sdktrace.IDGenerator {
	tb.Helper()
	field := reflect.ValueOf(p).Elem().FieldByName("idGenerator")
	if !field.IsValid() || field.Type() != reflect.TypeFor[sdktrace.IDGenerator]() {
		tb.Fatalf("this version of the SDK has no TracerProvider.idGenerator: %T", p)
	}
	return *(*sdktrace.IDGenerator)(unsafe.Pointer(field.UnsafeAddr()))
}

// The loops call the SDK's interface and do nothing else. The same machine code calls all
// generators.

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

// rate is how often an ID is generated, in each of GOMAXPROCS goroutines. A loop that runs flat
// out shows the cost in a program that does nothing else. A service generates some IDs each
// millisecond, or only a few a second, so that a generator may have to read the clock.
type rate struct {
	burst  int // calls one after the other; 0: as many as possible
	every  time.Duration
	asleep bool // between bursts, with cold caches afterwards, instead of watching the clock
}

func BenchmarkNewIDs(b *testing.B)    { atAllRates(b, loopNewIDs) }
func BenchmarkNewSpanID(b *testing.B) { atAllRates(b, loopNewSpanID) }

func atAllRates(b *testing.B, loop func(sdktrace.IDGenerator, int)) {
	for name, r := range map[string]rate{
		"flat":               {},
		"32-a-ms":            {burst: 32, every: time.Millisecond},
		"1-each-20ms-asleep": {burst: 1, every: 20 * time.Millisecond, asleep: true},
	} {
		b.Run("rate="+name, func(b *testing.B) {
			for _, g := range newGenerators(b) {
				b.Run("gen="+g.name, func(b *testing.B) {
					r.measure(b, func(n int) { loop(g.IDGenerator, n) })
				})
			}
		})
	}
}

// BenchmarkSpan measures Start and End of a root span, one a millisecond.
func BenchmarkSpan(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{
		"never": sdktrace.NeverSample(), "always": sdktrace.AlwaysSample(),
	} {
		b.Run("sampled="+name, func(b *testing.B) {
			for _, g := range newGenerators(b)[:3] {
				provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler),
					sdktrace.WithIDGenerator(g.IDGenerator))
				tracer := provider.Tracer("bench")
				b.Run("gen="+g.name, func(b *testing.B) {
					rate{burst: 1, every: time.Millisecond}.measure(b,
						func(n int) { startEnd(tracer, n) })
				})
			}
		})
	}
}

//go:noinline
func startEnd(t trace.Tracer, n int) {
	ctx := context.Background()
	for range n {
		_, span := t.Start(ctx, "span")
		span.End()
	}
}

// measure reports the time of one call in its goroutine.
func (r rate) measure(b *testing.B, loop func(n int)) {
	b.ReportAllocs()
	runtime.GC() // no generator pays for another's garbage
	loop(1000)
	n := b.N
	if r.burst == 0 {
		n, r.burst = 1, b.N
	}
	each := make([]float64, runtime.GOMAXPROCS(0))
	var ready atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for i := range each {
		all.Go(func() {
			for ready.Add(1); ready.Load() < int64(len(each)); { // all begin at once
			}
			each[i] = r.bursts(n, loop)
		})
	}
	all.Wait()
	sum := 0.0
	for _, ns := range each {
		sum += ns
	}
	b.ReportMetric(sum/float64(len(each)), "ns/op")
}

// bursts returns the time of one call in n bursts, less that of empty bursts, one between two full
// ones.
func (r rate) bursts(n int, loop func(n int)) float64 {
	var took [2][]float64 // of empty bursts, of full ones
	begin := time.Now()
	for i := range 2 * n {
		due := begin.Add(time.Duration(i) * r.every / 2)
		if r.asleep {
			time.Sleep(time.Until(due))
		} else {
			for time.Now().Before(due) {
			}
		}
		start := time.Now()
		loop(r.burst * (i % 2))
		took[i%2] = append(took[i%2], float64(time.Since(start)))
	}
	return (middle(took[1]) - middle(took[0])) / float64(r.burst)
}

// middle returns the mean of the middle half: clocks have steps, and some bursts are interrupted.
func middle(values []float64) float64 {
	slices.Sort(values)
	half := values[len(values)/4 : len(values)-len(values)/4]
	sum := 0.0
	for _, v := range half {
		sum += v
	}
	return sum / float64(len(half))
}
