// Package leasetest checks the [driver.Objects] of a store: see [Run].
package leasetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/history"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Storage is a place for objects: a prefix of keys, a namespace, a folder.
type Storage struct {
	// Server is the address, host:port, of the server, if clients reach it over TCP. Run puts a
	// proxy in front of it, which delays requests and responses. One client reaches it directly:
	// another address must not mean another store.
	Server string
	// Open returns a new client, which need not connect, of the server at an address: that of the
	// proxy, or "".
	Open func(address string) (driver.Objects, error)
	// Delete deletes an object, as an operator may do by mistake.
	Delete func(name string) error

	// Outage is how long the server is unreachable, by default a second. Some clients give up after
	// minutes: check yours once with a quarter of an hour.
	Outage time.Duration

	// Without a Server, Stall keeps requests from the store until resume is called, and Hold keeps
	// responses from clients. Hold may be nil if the store has no clock. Cut, which may be nil if
	// clients have no connections, ends them and refuses others until mend is called.
	Stall, Hold func() (resume func())
	Cut         func() (mend func())

	second func() (driver.Objects, error) // a client at another address
	place  string
}

// Run checks in some seconds that a [driver.Objects] keeps its contract. newStorage returns an
// empty storage that lasts until tb ends; it is called some twenty times.
func Run(t *testing.T, newStorage func(tb testing.TB) Storage) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, func(tb testing.TB) Storage { return newStorage(tb).prepared(tb) })
		})
	}
}

// prepared returns the storage behind a proxy, if it has a server, with a place.
func (s Storage) prepared(tb testing.TB) Storage {
	if s.Server != "" {
		proxy, open, server := network.NewProxy(tb, s.Server), s.Open, s.Server
		s.Open = func(string) (driver.Objects, error) { return open(proxy.Address()) }
		s.second = func() (driver.Objects, error) { return open(server) }
		s.Stall, s.Hold = proxy.Stall, proxy.Hold
		s.Cut = func() func() { proxy.Cut(); return proxy.Mend }
	}
	s.place = history.Place(tb, s.client(tb).Objects)
	return s
}

var checks = []struct {
	name string
	run  func(tb testing.TB, newStorage func(testing.TB) Storage)
}{
	{"what is written is read", written},
	{"reads after writes", fresh},
	{"places", places},
	{"conditions", conditions},
	{"writes at once", atOnce},
	{"outage", outage},
	{"histories", histories},
	{"a server that does not answer", contexts},
	{"clock", clock},
	{"Close", closes},
}

// client calls a server, and fails the test on errors that must not occur.
type client struct {
	driver.Objects
	tb    testing.TB
	place string
}

func (s Storage) client(tb testing.TB) client {
	tb.Helper()
	server, err := s.Open("")
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return client{server, tb, s.place}
}

func (c client) read(name string) driver.Object {
	c.tb.Helper()
	o, err := c.Read(context.Background(), name)
	if err != nil {
		c.tb.Fatalf("Read of %s: %v", name, err)
	}
	return o
}

func (c client) write(name, data, version string) {
	c.tb.Helper()
	sent := []byte(data)
	o, err := c.Write(context.Background(), name, sent, version, c.place)
	if err != nil {
		c.tb.Fatalf("Write of %s with the version that it has, %.20q: %v", name, version, err)
	}
	defer clear(sent) // it belongs to the caller
	if o.Version == "" || o.Version == version || o.Version != c.read(name).Version ||
		o.Data != nil && string(o.Data) != data {
		c.tb.Errorf("Write of %s returned the version %.20q and %d bytes; want the new version, "+
			"as a Read returns it, and no data or what was sent", name, o.Version, len(o.Data))
	}
}

// refused checks that the server refuses a write, also one of the data that it has: copies of a
// process write the same data, and only one of them may continue.
func (c client) refused(why, name, version string) {
	c.tb.Helper()
	before := c.read(name)
	for _, data := range []string{"refused\n", string(before.Data)} {
		_, err := c.Write(context.Background(), name, []byte(data), version, c.place)
		switch after := c.read(name); {
		case err == nil:
			c.tb.Errorf("Write of %q succeeded %s: writes are not conditional, and two processes "+
				"would be granted the same nodes", data, why)
		case !errors.Is(err, driver.ErrChanged):
			c.tb.Errorf("Write %s: got error %v, want ErrChanged", why, err)
		case after.Version != before.Version:
			c.tb.Errorf("Write %s returned ErrChanged, and wrote nevertheless", why)
		}
	}
}

// missing checks that an object does not exist.
func (c client) missing(name, why string) {
	c.tb.Helper()
	if o := c.read(name); o.Version != "" || len(o.Data) > 0 {
		c.tb.Errorf("an object that was %s has the version %.20q and %d bytes; want none", why,
			o.Version, len(o.Data))
	}
	c.refused("with a version, of an object that was "+why, name, "1")
}

// histories checks concurrent calls, also while requests reach the server after their callers gave
// up, and while connections are cut before the server has the requests, or clients the responses.
func histories(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	open := func() driver.Objects { return storage.client(tb).Objects }
	history.Check(tb, open, func() error {
		resume := storage.Stall()
		time.Sleep(2 * time.Second)
		resume()
		if storage.Cut == nil {
			return nil
		}
		for _, stop := range []func() func(){storage.Stall, storage.Hold} {
			resume = stop()
			time.Sleep(100 * time.Millisecond)
			mend := storage.Cut()
			time.Sleep(100 * time.Millisecond)
			mend()
			resume()
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	})
}

func written(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	one, version := storage.client(tb), ""
	clients := map[string]client{"the client that wrote": one,
		"another client": storage.client(tb)}
	if storage.second != nil {
		second, err := storage.second()
		if err != nil {
			tb.Fatalf("open at another address: %v", err)
		}
		clients["a client at another address"] = client{second, tb, storage.place}
	}
	for i := range 5 {
		// As large as a page of 64 blocks, with what text formats may change.
		data := fmt.Sprintf("{\"writes\":%d}\n", i) +
			strings.Repeat("\tname: 'x' \"y\" <z> é \\n\r\n  \n", 800) + "\n"
		one.write("page-0000", data, version)
		for name, c := range clients {
			o := c.read("page-0000")
			if string(o.Data) != data {
				tb.Errorf("%s reads %d bytes that differ from the %d that were written just "+
					"before: does it see every write at once, and are they kept byte by byte?",
					name, len(o.Data), len(data))
			}
			clear(o.Data) // it belongs to the caller
			version = o.Version
		}
	}
	newStorage(tb).client(tb).missing("page-0000", "written to another storage only")
}

// fresh finds reads that are older than what was acknowledged before them, if one in 300 is.
func fresh(tb testing.TB, newStorage func(testing.TB) Storage) {
	const rounds, readers, reads = 150, 5, 4
	storage := newStorage(tb)
	writer := storage.client(tb)
	var clients [readers]client
	for i := range clients {
		clients[i] = storage.client(tb)
	}
	for i := range rounds {
		data := fmt.Sprintf("%d\n", i)
		writer.write("page-0000", data, writer.read("page-0000").Version)
		var all sync.WaitGroup
		var stale atomic.Int64
		for _, c := range clients {
			all.Go(func() {
				for range reads {
					o, err := c.Read(context.Background(), "page-0000")
					if err != nil || string(o.Data) != data {
						stale.Add(1)
					}
				}
			})
		}
		if all.Wait(); stale.Load() > 0 {
			tb.Fatalf("of %d reads after an acknowledged write %d failed or returned older data: "+
				"does a read see every write at once?", (i+1)*readers*reads, stale.Load())
		}
	}
}

// places checks the place, and that nothing is written to another one if the server compares it.
func places(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage, other := newStorage(tb), newStorage(tb)
	c := storage.client(tb)
	unchanged := func(after string) {
		tb.Helper()
		if now := c.read("config").Place; now != storage.place {
			tb.Errorf("%s has changed the place from %q to %q", after, storage.place, now)
		}
	}
	history.Place(tb, storage.client(tb).Objects)
	unchanged("a second Prepare")
	c.missing("config", "prepared only")
	c.write("config", "config\n", "")
	c.refused("on condition that there is no such object, twice,", "config", "")
	c.write("config", "again\n", c.read("config").Version)
	unchanged("a write")
	c.write("page-0000", "page\n", "")
	before := c.read("page-0000")
	if before.Place != "" && before.Place != storage.place {
		tb.Errorf("Read has the place %q, and that of the object \"config\" is %q; want the "+
			"same or none", before.Place, storage.place)
	}
	other.client(tb).write("config", "config\n", "")
	if other.place == storage.place {
		tb.Errorf("a copy in another storage has the same place, %q", storage.place)
	}
	_, err := c.Write(context.Background(), "page-0000", []byte("moved\n"), before.Version,
		other.place)
	if err != nil && (!errors.Is(err, lease.ErrMoved) ||
		c.read("page-0000").Version != before.Version) {
		tb.Errorf("Write with the place of another storage: got error %v, want %v, and that "+
			"nothing is written, or none if the server cannot compare it", err, lease.ErrMoved)
	}
}

func conditions(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	one, two := storage.client(tb), storage.client(tb)
	one.missing("page-0000", "never written")
	one.write("page-0000", "first\n", "")
	two.refused("on condition that there is no such object, twice,", "page-0000", "")
	first := two.read("page-0000").Version
	one.refused("with a version that it never had", "page-0000", "x"+first)
	one.refused("with a version that it never had", "page-0000", first+"0") // a later number
	two.write("page-0000", "second\n", first)
	one.refused("with the version before", "page-0000", first)
	second := two.read("page-0000").Version
	if err := storage.Delete("page-0000"); err != nil {
		tb.Fatalf("delete: %v", err)
	}
	one.missing("page-0000", "deleted")
	one.refused("with the version that a deleted object had", "page-0000", second)
	one.write("page-0000", "third\n", "")
	one.refused("with a version from before it was deleted", "page-0000", first)
}

// clock checks the server's clock, unless the server has none.
func clock(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	c := storage.client(tb)
	// a server may have no place for objects before, and no answer
	c.write("page-0000", "first\n", "")
	began := c.read("page-0000").Time
	if began.IsZero() {
		return
	}
	if time.Since(began).Abs() > time.Minute || began.Nanosecond() > 0 {
		tb.Errorf("Read has the time %s at %s; want whole seconds of the server's clock, or none",
			began, time.Now())
	}
	const wait = 2 * time.Second
	time.Sleep(wait)
	if moved := c.read("page-0000").Time.Sub(began); moved < wait-time.Second ||
		moved > time.Minute {
		tb.Errorf("in %s the time of Read moved by %s: it must be the server's clock at the "+
			"response", wait, moved)
	}
	// A request that is delivered late has the time of its delivery.
	time.AfterFunc(wait, storage.Stall())
	if o := c.read("page-0000"); o.Time.Sub(began) < 2*wait-time.Second {
		tb.Errorf("a Read that reached the server after %s has the time %s, which is the "+
			"client's: want the server's", wait, o.Time)
	}
	// A response that is delivered late has the time when it was sent. A server may take a while,
	// too.
	const late = 3 * time.Second
	sent := c.read("page-0000").Time
	time.AfterFunc(late, storage.Hold())
	if moved := c.read("page-0000").Time.Sub(sent); moved >= late {
		tb.Errorf("a Read whose response took %s to the client has a time that is %s later than "+
			"that of the Read before it: want the server's time when it responded", late, moved)
	}
}

// atOnce begins with empty storages: the first write may have to create a place for objects.
func atOnce(tb testing.TB, newStorage func(testing.TB) Storage) {
	for range 3 {
		storage := newStorage(tb)
		var clients [8]client
		for i := range clients {
			clients[i] = storage.client(tb)
		}
		for i := range 10 {
			name := fmt.Sprintf("page-%04d", i)
			race(tb, clients[:], name) // to create it
			race(tb, clients[:], name)
		}
	}
}

// race writes an object with all clients at once on one condition: one succeeds.
func race(tb testing.TB, clients []client, name string) {
	tb.Helper()
	version := clients[0].read(name).Version
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	start := make(chan struct{})
	round := rand.Text() // data never recurs, since some stores compare it
	text := func(i int) string { return fmt.Sprintf("by %d in %s\n", i, round) }
	for i, c := range clients {
		all.Go(func() {
			<-start
			_, errs[i] = c.Write(context.Background(), name, []byte(text(i)), version, c.place)
		})
	}
	close(start)
	all.Wait()
	var acknowledged []string
	for i, err := range errs {
		if err == nil {
			acknowledged = append(acknowledged, text(i))
		} else if !errors.Is(err, driver.ErrChanged) {
			tb.Errorf("one of %d writes at once: got error %v, want ErrChanged", len(errs), err)
		}
	}
	if o := clients[1].read(name); len(acknowledged) != 1 || string(o.Data) != acknowledged[0] {
		tb.Fatalf("of %d writes at once on one condition, %q succeeded, and the object is "+
			"%q; want one: writes are not conditional", len(errs), acknowledged, o.Data)
	}
}

// outage makes the server unreachable, and calls it as often as processes do in a long outage.
func outage(tb testing.TB, newStorage func(testing.TB) Storage) {
	const tries = 50
	storage := newStorage(tb)
	if storage.Cut == nil {
		return
	}
	before := storage.client(tb)
	before.write("page-0000", "first\n", "")
	mend := storage.Cut()
	defer mend()
	opened, err := storage.Open("")
	if err != nil {
		tb.Fatalf("open while the server is unreachable: %v; it must send no request", err)
	}
	during := client{opened, tb, storage.place}
	pause := max(storage.Outage, time.Second) / tries
	for range tries {
		ctx, cancel := context.WithTimeout(context.Background(), pause)
		for _, c := range []client{during, before} {
			for name, call := range c.calls() {
				if err := call(ctx); err == nil || errors.Is(err, driver.ErrChanged) ||
					lease.Permanent(err) {
					tb.Fatalf("%s while the server is unreachable: got error %v, want one that "+
						"is neither ErrChanged nor permanent", name, err)
				}
			}
		}
		<-ctx.Done()
		cancel()
	}
	mend()
	for _, c := range []client{before, during} {
		c.recovered("page-0000")
	}
}

// recovered waits until an object can be read after an outage.
func (c client) recovered(name string) {
	c.tb.Helper()
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, err := c.Read(ctx, name)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.tb.Fatalf("Read, %s after the server was reachable again: %v; a client must try "+
				"to connect for as long as it is used", patience, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// calls are one of each kind. The Write has a version that the object does not have.
func (c client) calls() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Read": func(ctx context.Context) error { _, err := c.Read(ctx, "page-0000"); return err },
		"Write": func(ctx context.Context) error {
			_, err := c.Write(ctx, "page-0000", []byte("late\n"), "none", c.place)
			return err
		},
	}
}

// contexts ends contexts by their deadlines, and earlier, while the server does not answer.
func contexts(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	c := storage.client(tb)
	c.write("page-0000", "first\n", "")
	const wait, patience = 200 * time.Millisecond, 5 * time.Second
	calls := c.calls()
	calls["the first Read"] = func(ctx context.Context) error {
		connecting := storage.client(tb)
		defer connecting.close("while the server does not answer")
		_, err := connecting.Read(ctx, "page-0000")
		return err
	}
	for name, call := range calls {
		for _, deadline := range []time.Duration{wait, time.Minute} {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			time.AfterFunc(2*wait, cancel)
			resume, done := storage.Stall(), make(chan error, 1)
			go func() { done <- call(ctx) }()
			select {
			case err := <-done:
				if resume(); ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
					tb.Errorf("%s that the server does not answer: got error %v, want %v: an "+
						"error must wrap the context's", name, err, ctx.Err())
				}
			case <-time.After(2*wait + patience):
				resume()
				tb.Errorf("%s that the server does not answer had not returned %s after its "+
					"context was over: it must obey its context in flight, too; then it "+
					"returned %v", name, patience, <-done)
			}
		}
	}
}

// closes closes clients, as the store does when no call is in flight: one before its first call,
// and one after calls. Another client continues.
func closes(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	unused, used, other := storage.client(tb), storage.client(tb), storage.client(tb)
	used.write("page-0000", "first\n", "")
	other.read("page-0000")
	unused.close("before the first call")
	used.close("after the last call")
	other.read("page-0000")
}

// close closes a client, if it can be closed.
func (c client) close(when string) {
	c.tb.Helper()
	closer, ok := c.Objects.(io.Closer)
	if !ok {
		return
	}
	const patience = 5 * time.Second
	closed := make(chan error, 1)
	go func() { closed <- closer.Close() }()
	var err error
	select {
	case err = <-closed:
	case <-time.After(patience):
		err = fmt.Errorf("it has not returned for %s", patience)
	}
	if err != nil {
		c.tb.Errorf("Close %s: %v", when, err)
	}
}
