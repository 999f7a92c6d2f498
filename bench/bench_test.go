package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sys/cpu"

	"github.com/traceflake/traceflake/internal/embedded"
)

// TestMain lets the test be the processes that the program starts of itself.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args[1:], "-child") {
		main()
		return
	}
	os.Exit(m.Run())
}

func tiny() settings {
	return settings{rounds: 1, turn: time.Microsecond, idle: time.Millisecond, rows: 3000, ids: 1 << 14, calls: 8}
}

// Benchmark runs every subject as one of Go's benchmarks.
func Benchmark(b *testing.B) {
	g, err := newGenerators(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	subjects, err := everySubject(g, true)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range subjects {
		b.Run(s.key(), func(b *testing.B) {
			b.ReportAllocs()
			s.calls(b.N)
			if s.per > 1 {
				b.ReportMetric(float64(b.Elapsed())/float64(b.N*s.per), "ns/each")
			}
		})
	}
}

func TestEveryTargetHasItsSubjects(t *testing.T) {
	g, err := newGenerators(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []bool{false, true} {
		subjects, err := everySubject(g, all)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, s := range subjects {
			if seen[s.key()] {
				t.Errorf("two subjects %s", s.key())
			}
			seen[s.key()] = true
		}
		m := measure(subjects, 1, time.Microsecond)
		m.addSpans(g, 1, time.Microsecond)
		if _, err := lines(m); err == nil {
			t.Fatal("no error, though no variant was measured")
		}
		if err := variant("avx2").add(t.Context(), tiny(), m); err != nil {
			t.Fatal(err)
		}
		if _, err := lines(m); err == nil {
			t.Fatal("no error, though the portable build was not measured")
		}
		for _, k := range [][2]string{{"EncryptUint64s", "sparx64"}, {"Draw", "rand"}} { // for that is another build
			m.of[key(k[0], variant("purego").of(k[1]), 1)] = m.of[key(k[0], variant("avx2").of(k[1]), 1)]
		}
		ls, err := lines(m)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(targets()) + 2; len(ls) != want {
			t.Errorf("%d lines, want %d", len(ls), want)
		}
	}
	if err := g.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVariantWithoutAVX512HasNone(t *testing.T) {
	if !cpu.X86.HasAVX512F {
		t.Skip("this CPU has no AVX-512 to switch off")
	}
	if err := variant("avx2").measure(t.Context(), tiny()); err == nil {
		t.Error("AVX-512 is on, and was measured for AVX2")
	}
}

// No millisecond has as many calls as start the timer of idgen's clock.
func TestBurstsAreSeldom(t *testing.T) {
	in := make(map[int64]int)
	s := subject{name: "X", goroutines: 1, run: func(n int) { in[time.Now().UnixMilli()] += n }}
	b := bursts(s, 20*time.Millisecond)
	total := 0
	for ms, n := range in {
		total += n
		if n >= 64 {
			t.Errorf("%d calls in millisecond %d", n, ms)
		}
	}
	if total != b.calls || len(in) < 2 || b.wall <= 0 {
		t.Errorf("%+v: %d calls in %d milliseconds", b, total, len(in))
	}
}

func TestSeldom(t *testing.T) {
	m, err := measureSeldom(t.Context(), tiny())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.of) != 8 {
		t.Errorf("%d subjects, want 4 and their counterparts", len(m.of))
	}
	if text := seldomReport(m); strings.Count(text, "now and then") != 2 || strings.Contains(text, "NaN") {
		t.Error(text)
	}
}

func TestRatioIsOfNeighbours(t *testing.T) {
	// The machine gets slower and slower; a costs twice b all the time.
	m := samples{of: make(map[string][]sample)}
	for i := 1; i <= 9; i++ {
		m.add("b", sample{calls: 1, per: 1, wall: time.Duration(100 * i * i)})
		m.add("a", sample{calls: 1, per: 2, wall: time.Duration(400 * i * i)})
	}
	if got := m.ratio("a", "b", sample.wallNs); got != 2 {
		t.Errorf("ratio %g, want 2", got)
	}
}

func TestTurnsWithoutTheCPUsAreNoMeasurement(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	one, two := subject{name: "X", goroutines: 1}, subject{name: "X", goroutines: 64}
	for _, c := range []struct {
		cpu     time.Duration
		crowded bool
	}{{200, false}, {180, false}, {110, true}} {
		m := samples{subjects: []subject{one, two}, of: map[string][]sample{
			one.key(): {{calls: 1, per: 1, wall: 100, cpu: 50}},
			two.key(): {{calls: 1, per: 1, wall: 100, cpu: c.cpu}},
		}}
		if got := m.crowded(one.key(), two.key()); (got != "") != c.crowded {
			t.Errorf("%d ns of CPU time in 100 ns: %q", c.cpu, got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		line    line
		failed  bool
		verdict string
	}{
		{line{ratio: 1.03, most: 1.03}, false, "met"},
		{line{ratio: 1.2, most: 1}, false, "missed by 20 %"},
		{line{ratio: 1.26, most: 1}, true, "missed by 26 %"},
		{line{ratio: 1.7, most: 1.5, first: 1.8}, false, "missed, first target of 1.8 met"},
		{line{ratio: 2, most: 1.5, first: 1.8}, true, "missed by 33 %"},
		{line{ratio: 0.5, most: 1, allocs: freeAllocs, bytes: freeBytes}, false, "met"},
		{line{ratio: 0.5, most: 1, allocs: 3906}, true, "missed: 3906 allocations more in a million calls, 0.00 bytes a call"},
		{line{ratio: 0.5, most: 1, bytes: 1.5}, true, "missed: 0 allocations more in a million calls, 1.50 bytes a call"},
		{line{ratio: 0, most: 0}, false, "met"},
		{line{ratio: 1.034, most: 1.03}, false, "met"},
		{line{ratio: 1.036, most: 1.03}, false, "missed by 1 %"},
		{line{ratio: 0.4, most: 0, within: 1}, false, "met"},
		{line{ratio: 60, most: 0, within: 1}, true, "missed"},
		{line{ratio: 0.5, most: 1, crowded: "not measured"}, true, "not measured"},
	} {
		if got := c.line.verdict(); got != c.verdict {
			t.Errorf("%+v: verdict %q, want %q", c.line, got, c.verdict)
		}
		if got := c.line.failed(); got != c.failed {
			t.Errorf("%+v: failed %t", c.line, got)
		}
		if err := check([]line{c.line}); (err != nil) != c.failed {
			t.Errorf("%+v: check says %v", c.line, err)
		}
	}
}

func TestAnAllocationInSomeCallsIsSeen(t *testing.T) {
	var keep []byte
	n := 0
	s := subject{name: "X", goroutines: 1, run: func(calls int) {
		for range calls {
			if n++; n%256 == 0 {
				keep = make([]byte, 2048)
			}
		}
	}}
	got := take(s, 1<<16)
	runtime.KeepAlive(keep)
	if l := (line{allocs: 1e6 * got.allocs, most: 1}); !l.allocates() || l.allocs < 1e6/256 || l.allocs > 1e6/200 {
		t.Errorf("one allocation in 256 calls: %+v", got)
	}
}

func TestThroughputIsHeldAgainstTheBest(t *testing.T) {
	m := samples{of: make(map[string][]sample)}
	for _, name := range []string{"NewIDs", "NewSpanID"} {
		for i, n := range crowd { // a little slower with each doubling
			m.add(key("Crowd"+name, "traceflake", n), sample{calls: 1, per: 1, wall: time.Duration(1000 + 40*i), cpu: 1})
		}
	}
	for _, l := range crowdLines(m) {
		if l.met() || l.ratio != 1.24 {
			t.Errorf("%+v: want 1.24, missed", l)
		}
	}
}

func TestParseReadsWhatIsWritten(t *testing.T) {
	s := subject{name: "Draw", gen: "rand", goroutines: 2}
	want := sample{calls: 1000, per: 1, wall: 12345, cpu: 23456, allocs: 0.0000025, bytes: 48.25}
	m := samples{subjects: []subject{s}, of: map[string][]sample{s.key(): {want}}}
	var b strings.Builder
	if err := m.write(&b); err != nil {
		t.Fatal(err)
	}
	k, got, err := parse(strings.TrimSpace(b.String()))
	if err != nil || k != s.key() || got != want {
		t.Errorf("%s\ngave %s %+v, %v; want %s %+v", b.String(), k, got, err, s.key(), want)
	}
	for _, text := range []string{"", "PASS", "BenchmarkX", "BenchmarkX-2 12 ns/op"} {
		if k, got, err := parse(text); err == nil {
			t.Errorf("%q gave %s %+v", text, k, got)
		}
	}
}

func TestChiSquare(t *testing.T) {
	// 25 and 75 of 100: (25²+25²)/50 = 25 at one degree of freedom.
	if x2, p := chiSquare([]int{25, 75}); x2 != 25 || p > 1e-6 {
		t.Errorf("chi-square %g, p %g", x2, p)
	}
	if x2, p := chiSquare([]int{50, 50, 50}); x2 != 0 || p != 1 {
		t.Errorf("chi-square %g, p %g", x2, p)
	}
	if d := deviations([]int{25, 75}); d[0] != -5 || d[1] != 5 {
		t.Errorf("deviations %g", d)
	}
}

func TestBalanceCountsEveryID(t *testing.T) {
	all, err := measureBalance(tiny())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		for _, counts := range append(b.shards, b.histogram[:]) {
			total := 0
			for _, n := range counts {
				total += n
			}
			if total != tiny().ids {
				t.Errorf("%s: %d of %d IDs counted in %d", b.gen, total, tiny().ids, len(counts))
			}
		}
	}
}

// Every rival gives what the table says of it: the size, no ID twice, and the
// order. Time is in the first bytes of those that sort by more than nothing.
func TestRivalsAreWhatTheTableSays(t *testing.T) {
	rs, err := rivals()
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGenerators(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sdk := map[string]sdktrace.IDGenerator{"traceflake": g.private, "leased": g.leased, "default": g.sdk, "xray": g.xray, "uptrace": g.uptrace}
	for _, r := range named {
		r.next = func() []byte {
			id, span := sdk[r.gen].NewIDs(t.Context())
			if !id.IsValid() || !span.IsValid() {
				t.Errorf("%s: %s, %s", r.gen, id, span)
			}
			return id[:]
		}
		rs = append(rs, r)
	}
	// The bytes of time before those that are random or a counter.
	timeBytes := map[string]int{"gofrs-v6": 8, "ksuid": 4, "xray": 4, "uptrace": 8}
	for _, r := range rs {
		const many = 2000
		strictly, none, wraps := strings.Contains(r.ordered, "strictly in a process"), strings.HasPrefix(r.ordered, "no"), r.gen == "xid"
		seen := make(map[string]bool)
		var last []byte
		back := 0
		for range many {
			id := r.next()
			seen[string(id)] = true
			if size, _, _ := strings.Cut(r.bits, " "); size != strconv.Itoa(8*len(id)) && (size != "63" || len(id) != 8 || id[0] > 127) {
				t.Errorf("%s: %x has not %s bits", r.gen, id, r.bits)
			}
			first := id
			if n := timeBytes[r.gen]; n > 0 {
				first = id[:n]
			}
			if order := bytes.Compare(last, first); order > 0 || order == 0 && strictly {
				back++
			}
			last = first
		}
		if len(seen) != many {
			t.Errorf("%s: %d different IDs of %d", r.gen, len(seen), many)
		}
		if sorted := back == 0 || wraps && back == 1; !sorted && !none {
			t.Errorf("%s: %q, but %d IDs of %d were not after the one before", r.gen, r.ordered, back, many)
		} else if sorted && r.ordered == "no" {
			t.Errorf("%s: sorts, though the table says it does not", r.gen)
		}
	}
	if err := g.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The count must see the word that NewIDs shares, or it proves nothing about
// NewSpanID.
func TestCountOfCacheLines(t *testing.T) {
	all, err := countWrites(t.Context(), tiny())
	switch {
	case errors.Is(err, errNoStepping):
		t.Skip(err)
	case errors.Is(err, syscall.EPERM):
		t.Skip("this system does not let a process trace its child: ", err)
	case err != nil:
		t.Fatal(err)
	}
	for _, w := range all {
		if w.calls != 2*tiny().calls || w.instructions < 10 || w.lines < 1 || w.unknownInMedian > 0 {
			t.Errorf("%+v", w)
		}
		switch {
		case w.method == "NewIDs" && w.gen != "default":
			if w.sharing != w.calls || w.locked == 0 {
				t.Errorf("%+v: want the shared word in every call", w)
			}
		default: // one call of each thread may fill a batch
			if w.sharing > 2 || w.locked > 0 {
				t.Errorf("%+v: want no shared lines", w)
			}
		}
	}
	if text := writtenReport(all); !strings.Contains(text, "NewSpanID leased") || !strings.Contains(text, "`idgen.(*Generator).NewSpanID`") {
		t.Error(text)
	}
}

func TestCountOfFalseSharing(t *testing.T) {
	call := func(lines ...uint64) map[uint64]bool {
		m := make(map[uint64]bool)
		for _, l := range lines {
			m[l] = true
		}
		return m
	}
	thread := func(calls ...map[uint64]bool) steps {
		return steps{instructions: []int{9, 9, 9}, locked: []int{0, 1, 0}, unknown: []int{0, 0, 4}, writes: calls, functions: make([]map[string]int, 3)}
	}
	got := count("m", "g", [2]steps{
		thread(call(1, 2), call(1, 7), call(1, 2)),
		thread(call(3, 4), call(3), call(3, 7, 8)),
	})
	want := written{method: "m", gen: "g", calls: 6, instructions: 9, lines: 2, both: 1, sharing: 2, unknown: 8}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMemory(t *testing.T) {
	var f footprint
	if err := ask(t.Context(), "memory", tiny(), &f); err != nil {
		t.Fatal(err)
	}
	least, most := uint64(8*batch), uint64(64+16*f.CPUs)<<10
	if f.Heap < least || f.Heap > most || f.Resident < least || f.Resident > most {
		t.Errorf("%+v: want at least a batch, %d bytes, and at most 64 KiB + 16 KiB a CPU", f, least)
	}
}

// Every kind of idle generator is held against what a timer would take, and
// the timer of one that is used is seen.
func TestIdleLines(t *testing.T) {
	q, err := measureQuiet(t.Context(), settings{rounds: 1, turn: time.Microsecond, idle: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(q.lines()); len(q.rests) != len(idlers) || n != 7 {
		t.Errorf("%d processes and %d lines", len(q.rests), n)
	}
	if busy, seldom := q.rests["busy"], q.rests["seldom"]; busy.Wakes < 2*seldom.Wakes || busy.Wakes <= restWakes {
		t.Errorf("a timer that runs was not seen: %+v beside %+v", busy, seldom)
	}
	for _, job := range []string{"idle-unused", "idle-used", "idle-leased"} {
		was := q.rests[job]
		for _, r := range []rest{{CPU: time.Second}, {Wakes: 1000}} {
			q.rests[job] = r
			if !slices.ContainsFunc(q.lines(), line.failed) {
				t.Errorf("%s: %+v passes", job, r)
			}
		}
		q.rests[job] = was
	}
}

func TestChildSaysWhatIsWrong(t *testing.T) {
	var f footprint
	err := ask(t.Context(), "no such job", tiny(), &f)
	if err == nil || !strings.Contains(err.Error(), `no child "no such job"`) {
		t.Errorf("got %v", err)
	}
	if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
		t.Errorf("the answer was read: %v", err)
	}
}

func TestBTree(t *testing.T) {
	b, err := insertAll(t.Context(), embedded.PostgresForTest(t).DSN(), tiny().rows)
	if err != nil {
		t.Fatal(err)
	}
	for buffers, want := range map[int64]string{b.buffers: "every index fits", 8192: "does not fit"} {
		b := b
		b.buffers = buffers
		if text := b.report(); !strings.Contains(text, want) {
			t.Errorf("shared_buffers of %d: %s", buffers, text)
		}
	}
	sizes := make(map[string]tree)
	for _, k := range b.trees {
		if k.index < int64(8*b.rows) || k.wal < k.index || k.splits < 2 {
			t.Errorf("%s %s: %+v", k.what, k.column, k)
		}
		sizes[k.what+" "+k.column] = k
	}
	if random, ours := sizes["random (UUIDv4) uuid"], sizes["traceflake uuid"]; ours.splits >= random.splits {
		t.Errorf("keys in order split %d pages, random ones %d", ours.splits, random.splits)
	}
}

func TestFewRoundsAreNotWritten(t *testing.T) {
	for _, c := range []struct {
		rounds  int
		writes  bool
		refused string
	}{{10, true, ""}, {9, true, "9 rounds: RESULTS.md is of at least 10"}, {9, false, ""}, {0, false, "must be positive"}} {
		s := tiny()
		s.rounds = c.rounds
		if err := s.validate(c.writes); (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWhatStandsBetween(t *testing.T) {
	text := between([]written{
		{method: "NewSpanID", gen: "traceflake", instructions: 100, functions: map[string]int{
			"runtime.procPin": 5, "runtime.procUnpin": 3, "a/idgen.(*shards).take": 30, "a/idgen.(*batch).take": 20, "a/idgen.(*coarse).now": 4, "a/idgen.spanID": 38,
		}},
		{method: "NewSpanID", gen: "default", instructions: 70},
		{method: "NewIDs", gen: "traceflake", instructions: 200},
	})
	for _, want := range []string{"100 instructions against the default's 70", "8 pin", "30 find", "20 check", "4 read", "other 38"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %s", want, text)
		}
	}
}

func TestWhatTheSharedWordLeaves(t *testing.T) {
	n := runtime.GOMAXPROCS(0)
	m := samples{of: make(map[string][]sample)}
	for k, ns := range map[string]int{
		key("SharedNewIDs", "shared", n): 20, key("SharedNewIDs", "own", n): 10, key("SharedNewSpanID", "shared", n): 4, key("SharedNewSpanID", "own", n): 4,
		key("SharedDefaultAdd", "shared", n): 19, key("SharedDefaultAdd", "own", n): 12, key("SharedAdd", "shared", n): 8, key("SharedAdd", "own", n): 3,
		key("NewIDs", "default", n): 11, key("NewIDs", "xray", n): 50,
	} {
		m.add(k, sample{calls: 1, per: 1, wall: time.Duration(ns), cpu: time.Duration(n * ns)})
	}
	text := sharedReport(m)
	for _, want := range []string{"8.0 ns a call, is the floor", "| 1.0 of the SDK's default | 11.0 | 3.0 | 10.0 | 20.0 |", "| 0.3 of X-Ray's | 15.0 | 7.0 | 10.0 | 20.0 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %s", want, text)
		}
	}
}

// A tag that no file knows would measure the code as it is.
func TestVariantsAreOtherFiles(t *testing.T) {
	files := func(tags string) string {
		out, err := output(exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-f", "{{.Name}} {{.GoFiles}} {{.SFiles}}", "../sparx64", "../idgen"))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for tag, other := range map[variant]string{"purego": "sparx64", "nolinkname": "idgen"} {
		was, is := strings.Split(files(""), "\n"), strings.Split(files(string(tag)), "\n")
		for i := range was {
			if name, _, _ := strings.Cut(was[i], " "); name == other && was[i] == is[i] {
				t.Errorf("the tag %s changes nothing in %s: %s", tag, other, is[i])
			}
		}
	}
}
