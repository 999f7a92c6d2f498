package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
)

// Which cache lines a call writes is not timed but counted: a process makes
// IDs on two threads at once, is stopped, and both threads are then stepped
// through some calls, instruction by instruction, while this process decodes
// each instruction and notes the address that it writes.

type steppableCall struct {
	method, gen string
	call        func(sdktrace.IDGenerator) // one call; not inlined, so that it has an entry
}

// steppable are the calls that are stepped through.
var steppable = []steppableCall{
	{"NewSpanID", "traceflake", callNewSpanID},
	{"NewSpanID", "leased", callNewSpanID},
	{"NewSpanID", "default", callNewSpanID},
	{"NewIDs", "traceflake", callNewIDs},
	{"NewIDs", "leased", callNewIDs},
	{"NewIDs", "default", callNewIDs},
}

//go:noinline
func callNewSpanID(g sdktrace.IDGenerator) { g.NewSpanID(context.Background(), trace.TraceID{}) }

//go:noinline
func callNewIDs(g sdktrace.IDGenerator) { g.NewIDs(context.Background()) }

// stepped is the process that is stepped through, until it is killed.
func stepped(ctx context.Context, s settings) error {
	i := slices.IndexFunc(steppable, func(c steppableCall) bool { return c.method+"/"+c.gen == s.call })
	if i < 0 {
		return fmt.Errorf("no call %q", s.call)
	}
	g, err := generatorNamed(ctx, steppable[i].gen)
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(2)
	call := steppable[i].call
	var ready sync.WaitGroup
	for range 2 {
		ready.Add(1)
		// Not locked to its thread: one that is and has to yield would wait
		// for a thread that is stopped.
		go func() {
			for range 4 * batch {
				call(g)
			}
			ready.Done()
			for {
				call(g)
			}
		}()
	}
	ready.Wait()
	if err := answer(reflect.ValueOf(call).Pointer()); err != nil {
		return err
	}
	// Until the other side goes away; a read, for this goroutine must not run.
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

func generatorNamed(ctx context.Context, name string) (sdktrace.IDGenerator, error) {
	switch name {
	case "default":
		return sdkDefault()
	case "traceflake":
		return idgen.New(), nil
	}
	g, err := newGenerators(ctx)
	if err != nil {
		return nil, err
	}
	return g.leased, nil
}

// steps are the calls of one thread.
type steps struct {
	instructions []int // by call
	locked       []int // of them, those that lock their cache line
	unknown      []int // those whose writes are not known
	writes       []map[uint64]bool
	functions    []map[string]int // instructions by function
}

// written is what was counted for one kind of call.
type written struct {
	method, gen     string
	calls           int // of both threads
	instructions    int // of the median call
	locked          int
	lines           int // written by the median call, without its stack
	both            int // lines that both threads wrote
	sharing         int // calls that wrote one of them
	unknown         int // instructions whose writes are not known, in all calls
	unknownInMedian int
	functions       map[string]int // of a median call's instructions
}

func count(method, gen string, threads [2]steps) written {
	w := written{method: method, gen: gen}
	var all [2]map[uint64]bool
	for t, s := range threads {
		all[t] = make(map[uint64]bool)
		for _, call := range s.writes {
			for l := range call {
				all[t][l] = true
			}
		}
	}
	both := make(map[uint64]bool)
	for l := range all[0] {
		if all[1][l] {
			both[l] = true
		}
	}
	w.both = len(both)
	var instructions, locked, lines, unknown []int
	for _, s := range threads {
		w.calls += len(s.writes)
		for i, call := range s.writes {
			lines = append(lines, len(call))
			for l := range call {
				if both[l] {
					w.sharing++
					break
				}
			}
			w.unknown += s.unknown[i]
		}
		instructions = append(instructions, s.instructions...)
		locked = append(locked, s.locked...)
		unknown = append(unknown, s.unknown...)
	}
	for _, s := range threads {
		if i := slices.Index(s.instructions, median(instructions)); i >= 0 {
			w.functions = s.functions[i]
		}
	}
	w.instructions, w.locked, w.lines, w.unknownInMedian = median(instructions), median(locked), median(lines), median(unknown)
	return w
}

// errNoStepping comes where this program cannot decode instructions.
var errNoStepping = errors.New("instructions are stepped through on linux/amd64 only")

// errStuck comes when a thread was stopped with a lock in hand that the one
// that is stepped needs. Another try stops it elsewhere.
var errStuck = errors.New("a thread waits for one that is stopped")

// countWrites steps through every kind of call.
func countWrites(ctx context.Context, s settings) (all []written, err error) {
	for _, c := range steppable {
		s.call = c.method + "/" + c.gen
		threads, err := stepThrough(ctx, s)
		for try := 0; errors.Is(err, errStuck) && try < 10; try++ {
			threads, err = stepThrough(ctx, s)
		}
		if err != nil {
			return nil, fmt.Errorf("stepping through %s: %w", s.call, err)
		}
		all = append(all, count(c.method, c.gen, threads))
	}
	return all, nil
}

// stepThrough starts the process and steps through its two threads.
func stepThrough(ctx context.Context, s settings) (threads [2]steps, err error) {
	c, err := self(ctx, "stepped", s)
	if err != nil {
		return threads, err
	}
	c.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // no preemption between two instructions
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		return threads, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return threads, err
	}
	if err := c.Start(); err != nil {
		return threads, err
	}
	defer func() {
		// Killed, not told: a thread that is stopped would not hear it.
		_ = c.Process.Kill()
		_ = stdin.Close()
		_ = c.Wait()
	}()
	var entry uintptr // of the call
	if err := json.NewDecoder(stdout).Decode(&entry); err != nil {
		return threads, fmt.Errorf("the process to step through: %w", err)
	}
	return step(c.Process.Pid, entry, s.calls)
}

func writtenReport(all []written) string {
	if len(all) == 0 {
		return errNoStepping.Error() + ".\n"
	}
	rows := [][]string{{"", "calls", "instructions", "atomic", "lines written", "lines both CPUs wrote", "calls that wrote one"}}
	for _, w := range all {
		rows = append(rows, []string{w.method + " " + w.gen, fmt.Sprint(w.calls), fmt.Sprint(w.instructions), fmt.Sprint(w.locked),
			fmt.Sprint(w.lines), fmt.Sprint(w.both), fmt.Sprintf("%d (%.1f %%)", w.sharing, 100*float64(w.sharing)/float64(w.calls))})
	}
	unknown := 0
	for _, w := range all {
		unknown += w.unknown
	}
	note := "Every instruction could be decoded."
	if unknown > 0 {
		note = fmt.Sprintf("%d instructions could not be decoded (vectors, in calls that fill a batch), none of them in a median call.", unknown)
		if slices.MaxFunc(all, func(a, b written) int { return cmp.Compare(a.unknownInMedian, b.unknownInMedian) }).unknownInMedian > 0 {
			note = fmt.Sprintf("%d instructions could not be decoded: what they write is missing here.", unknown)
		}
	}
	return fmt.Sprintf(`Counted, not timed: two threads of one process make IDs at the same time, are stopped, and are stepped through some
calls one after the other, instruction by instruction (ptrace). Each instruction is decoded and the 64-byte line that
it writes is noted; the thread's own stack is left out. Instructions, atomic instructions and lines are of the median
call. %s

%s
Where the instructions of a median NewSpanID are, inlined functions by their own names:

%s
%s`, note, markdown(rows), functionTable(all), between(all))
}

// between says in words what a span ID of ours does that a default one does not.
func between(all []written) string {
	var ours, theirs written
	for _, w := range all {
		switch w.method + " " + w.gen {
		case "NewSpanID traceflake":
			ours = w
		case "NewSpanID default":
			theirs = w
		}
	}
	steps := []struct{ part, what string }{
		{"runtime.proc", "pin the goroutine to its processor and unpin it"},
		{"(*shards)", "find the processor's batch"},
		{"(*batch)", "check its second and generation and hand the ID out"},
		{"(*coarse)", "read the time that a timer wrote"},
	}
	rest := ours.instructions
	var text []string
	for _, s := range steps {
		n := 0
		for name, instructions := range ours.functions {
			if strings.Contains(name, s.part) {
				n += instructions
			}
		}
		if n > 0 {
			text = append(text, fmt.Sprintf("%d %s", n, s.what))
		}
		rest -= n
	}
	return fmt.Sprintf(`What stands between NewSpanID and 1.0: %d instructions against the default's %d. Of them
%s;
the other %d are the call and the ID's bytes. The default draws a random number inside the runtime, which has nothing to
pin for it, and checks nothing but that it is not zero.
`, ours.instructions, theirs.instructions, strings.Join(text, ", "), rest)
}

// functionTable says what stands between our span IDs and the default ones.
func functionTable(all []written) string {
	rows := [][]string{{"generator", "function", "instructions"}}
	for _, w := range all {
		if w.method != "NewSpanID" || w.gen == "leased" {
			continue
		}
		names := slices.SortedFunc(maps.Keys(w.functions), func(a, b string) int {
			return cmp.Or(cmp.Compare(w.functions[b], w.functions[a]), strings.Compare(a, b))
		})
		for _, name := range names {
			rows = append(rows, []string{w.gen, "`" + name[strings.LastIndexByte(name, '/')+1:] + "`", fmt.Sprint(w.functions[name])})
		}
	}
	return markdown(rows)
}
