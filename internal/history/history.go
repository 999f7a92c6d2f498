// Package history records concurrent calls of driver.Objects, and judges whether one linear history
// explains their answers.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

// Check checks the concurrent calls of several clients: every call is answered, no acknowledged
// write is lost, and no read is older than what was acknowledged before it. open returns a new
// client.
func Check(tb testing.TB, open func() driver.Objects) {
	tb.Helper()
	const each = 60
	h := newHistory()
	h.run(tb, open, func(calls int) bool { return calls >= each })()
	if n := h.count(unknown); n > 0 {
		tb.Errorf("%d of %d calls at once returned errors, such as: %v", n, len(h.calls), h.failed)
	}
}

// Faults checks the same while fault happens, such as a server that is killed and started again.
// Unanswered calls may have been carried out or not.
func Faults(tb testing.TB, open func() driver.Objects, fault func() error) {
	tb.Helper()
	const (
		enough = 50 // calls of a client
		settle = 300 * time.Millisecond
	)
	h, stop := newHistory(), make(chan struct{})
	check := h.run(tb, open, func(calls int) bool {
		select {
		case <-stop:
			return calls >= enough
		default:
			time.Sleep(rand.N(20 * time.Millisecond))
			return false
		}
	})
	time.Sleep(settle)
	if err := fault(); err != nil {
		tb.Errorf("fault: %v", err)
	}
	time.Sleep(settle)
	close(stop)
	check()
	unknown := h.count(unknown)
	tb.Logf("%d calls, %d without an answer", len(h.calls), unknown)
	if unknown > len(h.calls)/2 {
		tb.Errorf("%d of %d calls have no answer; that shows little", unknown, len(h.calls))
	}
}

// history records the calls of several clients. The data of an object names the write that it
// replaces, so the stored writes form a chain, which ends with the object's last data. Judging the
// calls takes time in proportion to their number.
type history struct {
	zero time.Time

	mu     sync.Mutex
	calls  []call
	failed error // one of those of unknown calls
}

func newHistory() *history { return &history{zero: time.Now()} }

type outcome string

const (
	made    outcome = "acknowledged"
	refused outcome = "refused"
	unknown outcome = "unanswered"
)

// call is a call of Write, or an object that a Read or List returned.
type call struct {
	object  string
	wrote   bool
	write   string // the write's name, or that of the data read; "" if the object did not exist
	before  string // the write that a write replaces
	version string // of the write, if the client knows it
	outcome outcome

	began, ended time.Duration
}

func (c call) String() string {
	return fmt.Sprintf("%q of %s (%.3f to %.3f s)", c.write, c.object, c.began.Seconds(),
		c.ended.Seconds())
}

// data returns the data of a write.
func (c call) data() []byte { return fmt.Appendf(nil, "%s after %s\n", c.write, c.before) }

// writeOf returns the name of the write that stored an object's data.
func writeOf(o driver.Object) string {
	write, _, _ := strings.Cut(string(o.Data), " ")
	return write
}

// count returns how many calls had an outcome.
func (h *history) count(o outcome) (n int) {
	for _, c := range h.calls {
		if c.outcome == o {
			n++
		}
	}
	return n
}

// add records a call that began at a time and has just ended with err.
func (h *history) add(c call, began time.Time, err error) {
	c.began, c.ended, c.outcome = began.Sub(h.zero), time.Since(h.zero), made
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, driver.ErrChanged) {
		c.outcome = refused
	} else if err != nil {
		c.outcome, h.failed = unknown, err
	}
	h.calls = append(h.calls, c)
}

// run starts clients. Each sends calls until enough returns true for their number. run returns a
// function that waits for the clients and judges the calls.
func (h *history) run(tb testing.TB, open func() driver.Objects,
	enough func(calls int) bool) (check func()) {
	const clients = 6
	var all sync.WaitGroup
	for i := range clients {
		c := historian{h, open(), fmt.Sprintf("c%d", i), map[string]driver.Object{}}
		all.Go(func() {
			for n := 0; !enough(n); n++ {
				c.calls(n)
			}
		})
	}
	return func() {
		all.Wait()
		last, c := map[string]driver.Object{}, open()
		for _, name := range historyNames {
			last[name] = final(tb, c, name)
		}
		h.judge(tb, last)
	}
}

// historyNames are the names of the objects.
var historyNames = []string{"page-0000", "page-0001"}

// final reads an object, with retries for some time: a server may just have been started.
func final(tb testing.TB, c driver.Objects, name string) (o driver.Object) {
	tb.Helper()
	const tries = 60
	var err error
	for range tries {
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		o, err = c.Read(ctx, name)
		if cancel(); err == nil {
			return o
		}
		time.Sleep(callTime / 2)
	}
	tb.Fatalf("Read of %s after all faults: %v", name, err)
	return o
}

// callTime is how long a call of a history takes at most.
const callTime = time.Second

// historian is a client whose calls are recorded.
type historian struct {
	*history
	driver.Objects
	name string
	seen map[string]driver.Object
}

// calls reads an object, writes it, and writes it again with the version that the first write
// returned. A client that cannot read writes with the version that it saw before. Sometimes it
// lists all objects first, and sometimes it writes once more with a version that is certainly old.
func (c historian) calls(n int) {
	if n%10 == 0 {
		c.list()
	}
	name := historyNames[rand.IntN(len(historyNames))]
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	o, err := c.Read(ctx, name)
	cancel()
	c.add(call{object: name, write: writeOf(o), version: o.Version}, began, err)
	if err == nil {
		c.seen[name] = o
	}
	o = c.seen[name]
	first := c.write(fmt.Sprintf("%s-%d-first", c.name, n), name, o)
	if first.Version == "" {
		return
	}
	c.seen[name] = first
	if second := c.write(fmt.Sprintf("%s-%d-second", c.name, n), name,
		first); second.Version != "" {
		c.seen[name] = second
	}
	if n%4 == 0 {
		c.write(fmt.Sprintf("%s-%d-late", c.name, n), name, o)
	}
}

// list lists all objects. Unless the server lists names only, this counts as a read of each.
func (c historian) list() {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	began := time.Now()
	listed, err := c.List(ctx)
	for _, name := range historyNames {
		if o := listed[name]; err != nil || o.Data != nil {
			c.add(call{object: name, write: writeOf(o)}, began, err)
		}
	}
}

// write writes an object on condition that it is still o, and returns the new object, which has a
// version only if the write was acknowledged.
func (c historian) write(id, name string, o driver.Object) driver.Object {
	w := call{object: name, wrote: true, write: id, before: writeOf(o)}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	began := time.Now()
	written, err := c.Write(ctx, name, w.data(), o.Version)
	if err != nil {
		written.Version = ""
	}
	w.version = written.Version
	c.add(w, began, err)
	return driver.Object{Data: w.data(), Version: written.Version}
}

// judge fails tb unless each object's writes form a chain that contains every acknowledged write
// and no refused one, and no read returned an older write than one that was known before the read
// began.
func (h *history) judge(tb testing.TB, last map[string]driver.Object) {
	tb.Helper()
	for _, name := range slices.Sorted(maps.Keys(last)) {
		var calls []call
		for _, c := range h.calls {
			if c.object == name {
				calls = append(calls, c)
			}
		}
		if err := judgeObject(calls, writeOf(last[name])); err != nil {
			tb.Errorf("%d calls of %s: %v", len(calls), name, err)
		}
	}
}

// judgeObject returns the first mistake in the calls of an object, whose final data is of the write
// last.
func judgeObject(calls []call, last string) error {
	place, err := chainOf(calls, last)
	if err != nil {
		return err
	}
	// Calls in the order of their ends, to know the newest write that was known at a time.
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.ended, b.ended) })
	versions, writes := map[string]string{}, map[string]string{}
	var known []call // each newer than the one before it
	for _, c := range calls {
		if c.outcome != made {
			continue
		}
		at, ok := place[c.write]
		if !ok && c.wrote {
			return fmt.Errorf("the write %v was acknowledged, and is not among those that led to "+
				"the last one: it was forgotten, never stored, or replaced by one on condition of "+
				"another version", c)
		} else if !ok {
			return fmt.Errorf(
				"a read returned %v, which is not among the writes that led to the last one", c)
		}
		i, _ := slices.BinarySearchFunc(known, c.began,
			func(k call, began time.Duration) int { return cmp.Compare(k.ended, began) })
		if i > 0 && at < place[known[i-1].write] {
			return fmt.Errorf("%v is older than %v, which was known before: does a read see "+
				"every write at once?", c, known[i-1])
		}
		if len(known) == 0 || at > place[known[len(known)-1].write] {
			known = append(known, c)
		}
		if c.version == "" {
			continue
		}
		if other, ok := versions[c.write]; ok && other != c.version {
			return fmt.Errorf("the write %v has the versions %.40q and %.40q", c, other, c.version)
		}
		if other, ok := writes[c.version]; ok && other != c.write {
			return fmt.Errorf("the writes %q and %v have the same version, %.40q: it must change "+
				"with every write", other, c, c.version)
		}
		versions[c.write], writes[c.version] = c.version, c.write
	}
	return nil
}

// chainOf returns the places of the writes that led to last; 0 is the place of the missing object.
func chainOf(calls []call, last string) (place map[string]int, err error) {
	all := map[string]call{}
	for _, c := range calls {
		if c.wrote {
			all[c.write] = c
		}
	}
	var chain []string
	for write := last; write != ""; write = all[write].before {
		switch c, ok := all[write]; {
		case !ok:
			return nil, fmt.Errorf("the data is of %q, which nobody wrote", write)
		case c.outcome == refused:
			return nil, fmt.Errorf("the write %v was refused, but stored", c)
		}
		chain = append(chain, write)
	}
	place = map[string]int{"": 0}
	for i, write := range chain {
		place[write] = len(chain) - i
	}
	return place, nil
}
