// Package history records concurrent calls of driver.Objects, and judges whether one linear history
// explains their answers.
package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

// Check checks the concurrent calls of several clients while fault happens, such as a server that
// is killed and started again: no acknowledged write is lost, and no read is older than what was
// acknowledged before it. Calls that are not answered within a second may have been carried out or
// not. Clients have answers before and after the fault. open returns a new client.
func Check(tb testing.TB, open func() driver.Objects, fault func() error) {
	tb.Helper()
	const most = 20 * answers // a server that stays unavailable has none
	h, over := &history{zero: time.Now(), place: Place(tb, open())}, make(chan struct{})
	var all, begun sync.WaitGroup
	begun.Add(clients)
	for i := range clients {
		c := client{h, open(), fmt.Sprintf("c%d", i), map[string]driver.Object{}}
		all.Go(func() {
			for n, after, got := 1, 0, 0; got < answers && after < most; n++ {
				answered := c.calls(n)
				if n == early {
					begun.Done()
				}
				select {
				case <-over:
					if after++; answered {
						got++
					}
				default:
					time.Sleep(rand.N(20 * time.Millisecond))
				}
			}
		})
	}
	begun.Wait()
	err := fault()
	close(over)
	if all.Wait(); err != nil {
		tb.Errorf("fault: %v", err)
	}
	if n := h.acknowledged(); n < clients*early {
		tb.Errorf("of %d writes only %d were acknowledged, want at least %d", len(h.calls), n,
			clients*early)
	}
	c := open()
	for _, name := range objects {
		last, err := c.Read(context.Background(), name)
		if err != nil {
			tb.Fatalf("Read of %s after all calls: %v", name, err)
		}
		calls := slices.DeleteFunc(slices.Clone(h.calls),
			func(c call) bool { return c.object != name })
		if err := judge(calls, string(last.Data)); err != nil {
			tb.Errorf("%d calls of %s: %v", len(calls), name, err)
		}
	}
}

// Place prepares a server, and returns its place.
func Place(tb testing.TB, o driver.Objects) string {
	tb.Helper()
	var err error
	if p, ok := o.(interface{ Prepare(context.Context) error }); ok {
		err = p.Prepare(context.Background())
	}
	if err != nil {
		tb.Fatalf("Prepare: %v", err)
	}
	config, err := o.Read(context.Background(), "config")
	if err != nil || config.Place == "" {
		tb.Fatalf("Read of config has the place %q, %v; want a place", config.Place, err)
	}
	return config.Place
}

const (
	clients = 6
	early   = 10          // calls of each client before the fault
	answers = 60          // of each client after it
	timeout = time.Second // of a call
)

// objects are the names of the objects.
var objects = []string{"page-0000", "page-0001"}

// history records the calls of several clients. The data of an object lists the writes that led to
// it: that of each answer must be the beginning of the object's last data.
type history struct {
	zero  time.Time
	place string

	mu    sync.Mutex
	calls []call
}

// acknowledged returns how many writes were acknowledged.
func (h *history) acknowledged() (n int) {
	for _, c := range h.calls {
		if c.wrote && c.outcome == made {
			n++
		}
	}
	return n
}

type outcome int

const (
	made outcome = iota
	refused
	unknown
)

// call is a call of Write, or an object that a Read returned.
type call struct {
	object  string
	wrote   bool
	data    string // what was written or read
	outcome outcome

	began, ended time.Duration
}

func (c call) String() string {
	list := strings.Fields(c.data)
	return fmt.Sprintf("%q of %s (%.3f to %.3f s)", list[max(len(list)-1, 0):], c.object,
		c.began.Seconds(), c.ended.Seconds())
}

// add records a call that began at a time and has just ended with err.
func (h *history) add(c call, began time.Time, err error) {
	c.began, c.ended, c.outcome = began.Sub(h.zero), time.Since(h.zero), made
	h.mu.Lock()
	defer h.mu.Unlock()
	_, undone := errors.AsType[*driver.TryAgain](err)
	switch {
	case undone && !c.wrote:
		return
	case undone || errors.Is(err, driver.ErrChanged):
		c.outcome = refused
	case err != nil:
		c.outcome = unknown
	}
	h.calls = append(h.calls, c)
}

// client is a client whose calls are recorded.
type client struct {
	*history
	driver.Objects
	name string
	seen map[string]driver.Object
}

// calls reads an object, writes it, and writes it again with the version that the first write
// returned. A client that cannot read writes with the version that it saw before. Sometimes it
// writes once more with a version that is certainly old.
// It reports whether the first write was answered.
func (c client) calls(n int) (answered bool) {
	name := objects[rand.IntN(len(objects))]
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	o, err := c.Read(ctx, name)
	cancel()
	c.add(call{object: name, data: string(o.Data)}, began, err)
	if err == nil {
		c.seen[name] = o
	}
	o = c.seen[name]
	first, err := c.write(name, fmt.Sprintf("%s-%d-first\n", c.name, n), o)
	if err == nil {
		_, _ = c.write(name, fmt.Sprintf("%s-%d-second\n", c.name, n), first)
		if n%4 == 0 {
			_, _ = c.write(name, fmt.Sprintf("%s-%d-late\n", c.name, n), o)
		}
	}
	return err == nil || errors.Is(err, driver.ErrChanged)
}

// write appends to an object on condition that it is still o, and returns the new object.
func (c client) write(name, text string, o driver.Object) (driver.Object, error) {
	data := string(o.Data) + text
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	began := time.Now()
	written, err := c.Write(ctx, name, []byte(data), o.Version, c.place)
	if err == nil {
		o = driver.Object{Data: []byte(data), Version: written.Version}
		c.seen[name] = o
	}
	c.add(call{object: name, wrote: true, data: data}, began, err)
	return o, err
}

// judge returns a mistake in the calls of an object with its last data: that data must begin with
// what was read or acknowledged, and with no refused write, and no answer may be older than one
// that was known before its call began.
func judge(calls []call, last string) error {
	for _, c := range calls {
		stored := strings.HasPrefix(last, c.data)
		switch {
		case c.outcome == refused && stored:
			return fmt.Errorf("the write %v was refused, but stored", c)
		case c.outcome != made:
			continue
		case !stored && c.wrote:
			return fmt.Errorf("the write %v was acknowledged, and is not among those that led to "+
				"the last one: it was forgotten, never stored, or replaced by one on condition of "+
				"another version", c)
		case !stored:
			return fmt.Errorf(
				"a read returned %v, which is not among the writes that led to the last one", c)
		}
		for _, known := range calls {
			if known.outcome == made && known.ended < c.began && len(c.data) < len(known.data) {
				return fmt.Errorf("%v is older than %v, which was known before: does a read see "+
					"every write at once?", c, known)
			}
		}
	}
	return nil
}
