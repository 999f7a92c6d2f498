package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

// rest is what a process had of the CPU while it slept for a part of the time,
// and how often it woke: a timer that runs wakes it.
type rest struct {
	CPU   time.Duration
	Wakes int64
}

type idler func() (keep any, err error)

func nothing() (any, error) { return struct{}{}, nil }

func unused() (any, error) { return idgen.New(), nil }

func used() (any, error) {
	g := idgen.New()
	use(g)
	return g, nil
}

// use makes as many IDs as it takes for the clock's timer to run.
func use(g *idgen.Generator) {
	for range 1000 {
		g.NewIDs(context.Background())
	}
}

func leased() (any, error) {
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	k, err := lease.Start(context.Background(), driver.NewMemory(), codec)
	if err != nil {
		return nil, err
	}
	if err := k.Ready(context.Background()); err != nil {
		return nil, err
	}
	g := idgen.New(idgen.WithSource(k))
	use(g)
	return []any{g, k}, nil
}

// seldom and busy make some IDs each 20 ms. The latter shows that a timer
// would be seen.
func seldom() (any, error) { return often(1) }

func busy() (any, error) { return often(1000) }

func often(ids int) (any, error) {
	g := idgen.New()
	go func() {
		for {
			for range ids {
				g.NewIDs(context.Background()) // a span ID alone needs no millisecond
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return g, nil
}

// watches are the parts of the time that a process is watched; the median counts. One in which
// somebody else had the CPU for a while is another: Go's monitor wakes dozens of
// times until a thread that is ready to run does.
const watches = 5

// idle measures a process that sleeps.
func idle(s settings, prepare idler) error {
	keep, err := prepare()
	if err != nil {
		return err
	}
	time.Sleep(1100 * time.Millisecond) // the clock's timers end with the second in which they were started
	debug.FreeOSMemory()                // or the scavenger wakes now and then for what the collector left it
	time.Sleep(200 * time.Millisecond)  // for both to end
	var woke [watches]int64
	var took [watches]time.Duration
	for i := range watches {
		before, cpu := wakes(), cpuTime()
		time.Sleep(s.idle / watches)
		took[i], woke[i] = cpuTime()-cpu, wakes()-before
	}
	runtime.KeepAlive(keep)
	return answer(rest{CPU: median(took[:]), Wakes: median(woke[:])})
}

// wakes is how often a thread of this process gave up its CPU to wait.
func wakes() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for arguments that make no sense
	}
	return u.Nvcsw
}

// footprint is the memory of a generator that every CPU has used.
type footprint struct {
	Resident, Heap uint64 // bytes
	CPUs           int
}

// memory makes many generators, for one is less than a page of what the
// runtime takes or gives back.
func memory() error {
	const many = 512
	f := footprint{CPUs: runtime.GOMAXPROCS(0)}
	generators := make([]*idgen.Generator, many)
	everyCPU(idgen.New()) // what is made once a process
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	resident, err := residentBytes()
	if err != nil {
		return err
	}
	heap := heapBytes()
	for i := range generators {
		generators[i] = idgen.New()
		everyCPU(generators[i])
	}
	after, err := residentBytes()
	if err != nil {
		return err
	}
	f.Resident = (after - resident) / many
	runtime.GC()
	f.Heap = (heapBytes() - heap) / many
	runtime.KeepAlive(generators)
	return answer(f)
}

// everyCPU makes IDs on every CPU at the same time.
func everyCPU(g *idgen.Generator) {
	var wg sync.WaitGroup
	var running atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for running.Add(1); running.Load() < int64(runtime.GOMAXPROCS(0)); {
				// spin: who waits otherwise leaves its CPU to the others
			}
			for range 4 * batch {
				g.NewIDs(context.Background())
			}
		})
	}
	wg.Wait()
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// residentBytes needs Linux.
func residentBytes() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm: %q", text)
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}

// quiet is what generators cost while nobody asks.
type quiet struct {
	idle   time.Duration
	rests  map[string]rest
	memory footprint
}

var idlers = []struct{ job, what string }{
	{"idle-nothing", "no generator"},
	{"idle-unused", "a generator that was never used"},
	{"idle-used", "a generator that was used, a second ago"},
	{"idle-leased", "a generator that was used likewise, and its lease"},
	{"seldom", "a generator that makes a trace ID each 20 ms"},
	{"busy", "a generator that makes a thousand trace IDs each 20 ms: its timer runs"},
}

func measureQuiet(ctx context.Context, s settings) (q quiet, err error) {
	q = quiet{idle: s.idle, rests: make(map[string]rest)}
	if err := ask(ctx, "memory", s, &q.memory); err != nil {
		return q, err
	}
	// Those that do nothing at once, the others when nothing is disturbed.
	return q, errors.Join(q.watch(ctx, s, "idle-"), q.watch(ctx, s, ""))
}

// watch measures the idlers whose names begin so and that were not measured
// yet, all at once.
func (q quiet) watch(ctx context.Context, s settings, prefix string) (err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, i := range idlers {
		if _, done := q.rests[i.job]; done || !strings.HasPrefix(i.job, prefix) {
			continue
		}
		wg.Go(func() {
			var r rest
			failed := ask(ctx, i.job, s, &r)
			mu.Lock()
			defer mu.Unlock()
			q.rests[i.job], err = r, errors.Join(err, failed)
		})
	}
	wg.Wait()
	return err
}

// What a process that sleeps and then looks at its time has of the CPU by
// itself, and how often it wakes. A timer of a millisecond wakes it 2000 times
// in 2 s, and takes 80 ms.
const (
	restCPU   = 1 // ms
	restWakes = 10
)

// lines are the lines of the table of ratios that are no ratios.
func (q quiet) lines() (ls []line) {
	base := q.rests["idle-nothing"]
	for _, i := range idlers[1:] {
		if !strings.HasPrefix(i.job, "idle-") {
			continue
		}
		r := q.rests[i.job]
		ls = append(ls,
			line{
				what: fmt.Sprintf("CPU time in %v of a process with %s", q.idle/watches, i.what), cost: ms(r.CPU), against: "with " + idlers[0].what, counterpart: ms(base.CPU),
				ratio: roundMs(r.CPU), unit: " ms", within: restCPU,
			},
			line{
				what: "wakes of the same", cost: strconv.FormatInt(r.Wakes, 10), against: "the same", counterpart: strconv.FormatInt(base.Wakes, 10),
				ratio: float64(r.Wakes), within: restWakes,
			})
	}
	f := q.memory
	most := 64 + 16*float64(f.CPUs)
	kib := func(bytes uint64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/1024) }
	return append(ls, line{
		what: fmt.Sprintf("resident memory of a generator, %d CPUs", f.CPUs), cost: kib(f.Resident), against: "64 KiB + 16 KiB a CPU", counterpart: fmt.Sprintf("%g KiB", most),
		ratio: float64(f.Resident) / 1024, most: most, unit: " KiB",
	})
}

// roundMs is d in milliseconds, in tenths: the rest is the sleeper's own.
func roundMs(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond).Microseconds()) / 1000
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func (q quiet) report() string {
	rows := [][]string{{"a process with", fmt.Sprintf("CPU time in %v", q.idle/watches), "wakes"}}
	for _, i := range idlers {
		r := q.rests[i.job]
		rows = append(rows, []string{i.what, ms(r.CPU), strconv.FormatInt(r.Wakes, 10)})
	}
	return fmt.Sprintf(`Each row is a process of its own that sleeps for %v, in %d parts, of which this is the median; the last two are
measured after the others. Wakes are its voluntary context switches: a timer that runs cannot do without them, neither
the clock's in the last row nor those that the last two processes sleep by. The table of ratios bounds what a process
has in all, with nothing subtracted: up to %d ms and %d wakes are the Go runtime's own.

%s
512 generators, each used on all %d CPUs at once: %.1f KiB resident each, and %.1f KiB of live heap.
`, q.idle, watches, restCPU, restWakes, markdown(rows), q.memory.CPUs, float64(q.memory.Resident)/1024, float64(q.memory.Heap)/1024)
}
