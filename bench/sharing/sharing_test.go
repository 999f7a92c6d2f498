package sharing

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

func needTwoCPUs(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("two goroutines do not run at the same time on one CPU")
	}
}

type apart struct {
	_ [128]byte
	n int
	_ [128]byte
}

// Each processor has one of the slots; some calls write a word beside it.
type counters struct {
	slots []*apart
	_     [128]byte
	word  atomic.Int64
	_     [128]byte
}

// own pins the goroutine while it increments its processor's slot.
func (c *counters) own() int {
	p := procPin()
	c.slots[p].n++
	n := c.slots[p].n
	procUnpin()
	return n
}

const stops = 200

func TestCount(t *testing.T) {
	needTwoCPUs(t)
	state := new(counters)
	for range runtime.GOMAXPROCS(0) {
		state.slots = append(state.slots, new(apart))
	}
	for _, c := range []struct {
		what      string
		call      func()
		low, high float64
	}{
		{"only their own", func() { state.own() }, 0, 0},
		{"a shared word", func() { state.own(); state.word.Add(1) }, 1, 1},
		{"a shared word in each 50th call", func() {
			if state.own()%50 == 0 {
				state.word.Add(1)
			}
		}, 0.012, 0.028},
	} {
		counts, err := count(state, c.call, stops)
		if err != nil {
			t.Fatal(err)
		}
		if s := counts.Share(); s < c.low || s > c.high || counts.Calls < stops*looks {
			t.Errorf("%s: %d of %d calls", c.what, counts.Shared, counts.Calls)
		}
	}
}

// Two words in one line are shared, although neither goroutine writes the other's word.
func TestCountOfFalseSharing(t *testing.T) {
	needTwoCPUs(t)
	state := &struct{ words []int }{make([]int, runtime.GOMAXPROCS(0))}
	c, err := count(state, func() { state.words[processor()]++ }, stops)
	if err != nil || c.Share() != 1 {
		t.Errorf("%d of %d calls: %v", c.Shared, c.Calls, err)
	}
}

func TestWalkFindsAllMemory(t *testing.T) {
	type inner struct{ n, m int }
	type outer struct {
		pointer atomic.Pointer[inner]
		boxed   any
		slice   []*inner
		array   [2]inner
		cycle   *outer
		pool    sync.Pool
	}
	o := &outer{boxed: new(inner), slice: []*inner{nil, new(inner)}}
	pooled := make([]*inner, 100) // one is private to the processor, the others are in its chain
	for i := range pooled {
		pooled[i] = new(inner)
		o.pool.Put(pooled[i])
	}
	o.pointer.Store(new(inner))
	o.cycle = o
	found, err := regions(o)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(){
		"a pointer behind an atomic one": func() { o.pointer.Load().m++ },
		"an interface":                   func() { o.boxed.(*inner).n++ },
		"a slice's element":              func() { o.slice[1].m++ },
		"the slice itself":               func() { o.slice[0] = o.slice[1] },
		"an array":                       func() { o.array[1].m++ },
		"the first in a pool":            func() { pooled[0].m++ },
		"the last in a pool":             func() { pooled[99].m++ },
	} {
		p, lines := newPicture(found), make(map[uintptr]bool)
		p.take()
		p.changed(lines)
		if len(lines) != 0 {
			t.Errorf("%d lines changed without a write", len(lines))
		}
		change()
		if p.changed(lines); len(lines) != 1 {
			t.Errorf("%s: %d lines", what, len(lines))
		}
	}
}

func TestWalkRefusesUninspectableMemory(t *testing.T) {
	for _, root := range []any{&struct{ m map[int]int }{map[int]int{1: 1}}, &struct{ c chan int }{make(chan int)}, &struct{ p unsafe.Pointer }{unsafe.Pointer(new(int))}} {
		if _, err := regions(root); err == nil || !strings.Contains(err.Error(), "cannot inspect") {
			t.Errorf("%T: %v", root, err)
		}
	}
}

func TestGenerator(t *testing.T) {
	needTwoCPUs(t)
	costs, err := Measure(t.Context(), stops)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs.Counts {
		if c.Calls < stops*looks || c.Lines < 1 { // each call changes its batch
			t.Errorf("%+v", c)
		}
		if c.What == "NewSpanID" && c.Share() > 0.02 {
			t.Errorf("%s: %d of %d calls changed a shared line, want at most 2 %%", c.What, c.Shared, c.Calls)
		}
	}
	if text := costs.Report(); strings.Contains(text, "NaN") || len(costs.Counts) != 2 {
		t.Errorf("%+v:\n%s", costs, text)
	}
}

func TestManyCPUs(t *testing.T) {
	c := Costs{Call: 20, Write: 10, Counts: []Count{{What: "NewIDs", Calls: 1000, Shared: 16, Most: 8}}}
	if text := (Costs{Call: 20, Write: math.NaN(), Counts: c.Counts}).Report(); !strings.Contains(text, "| 8 | –, 62, 25 |") {
		t.Errorf("the report has a figure that was not measured:\n%s", text)
	}
	for _, want := range []string{"16 (1.60 %)", "| 8 | 250, 62, 25 |"} {
		if text := c.Report(); !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
