package pagestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver/pages"
)

// Storage is a place for objects: a prefix of keys, a namespace, a folder.
type Storage struct {
	// Open returns a new client, which need not connect.
	Open func() (pages.Server, error)
	// Delete, if it is not nil, deletes an object, as an operator may do by mistake.
	Delete func(name string) error
	// Stall, if it is not nil, keeps the server from answering until resume is called, as [Proxy.Stall].
	Stall func() (resume func())
}

// Run checks in some seconds that a [pages.Server] keeps its contract. newStorage makes an empty
// storage that lasts until tb ends; it is called a dozen times. A Store on a server that passes
// should pass leasetest.Run.
func Run(t *testing.T, newStorage func(tb testing.TB) Storage) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStorage) })
	}
}

type check struct {
	name string
	run  func(tb testing.TB, newStorage func(testing.TB) Storage)
}

var checks = []check{
	{"an object that was never written", neverWritten},
	{"what is written is read", written},
	{"conditions", conditions},
	{"conditions of writes at once", atOnce},
	{"List", list},
	{"two storages", twoStorages},
	{"a context that is over", over},
	{"a server that does not answer", stalled},
	{"a deleted object", deleted},
}

// client is a server, and fails the test where no error may be.
type client struct {
	pages.Server
	tb testing.TB
}

func (s Storage) client(tb testing.TB) client {
	tb.Helper()
	server, err := s.Open()
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return client{server, tb}
}

func (c client) read(name string) pages.Object {
	c.tb.Helper()
	o, err := c.Read(context.Background(), name)
	if err != nil {
		c.tb.Fatalf("Read of %s: %v", name, err)
	}
	return o
}

func (c client) write(name, data, version string) {
	c.tb.Helper()
	o, err := c.Write(context.Background(), name, []byte(data), version)
	if err != nil {
		c.tb.Fatalf("Write of %s with the version that it has, %q: %v", name, short(version), err)
	}
	if o.Version == "" || o.Version == version {
		c.tb.Errorf("Write of %s returned the version %q; want the new one", name, short(o.Version))
	}
	if o.Data != nil && string(o.Data) != data {
		c.tb.Errorf("Write of %s returned data other than was sent, although it stored that", name)
	}
}

// refused is a write that the server must refuse.
func (c client) refused(why, name, version string) {
	c.tb.Helper()
	before := c.read(name)
	o, err := c.Write(context.Background(), name, []byte("refused\n"), version)
	switch after := c.read(name); {
	case err == nil:
		c.tb.Fatalf("Write succeeded %s: writes are not conditional, and two processes would be granted the same nodes", why)
	case !errors.Is(err, pages.ErrChanged):
		c.tb.Errorf("Write %s: got error %v, want ErrChanged", why, err)
	case after.Version != before.Version || !bytes.Equal(after.Data, before.Data):
		c.tb.Errorf("Write %s returned ErrChanged, and wrote nevertheless", why)
	case o.Version != "" && (o.Version != before.Version || !bytes.Equal(o.Data, before.Data)):
		c.tb.Errorf("Write %s returned an object, which need not be, and it is not the one that is there", why)
	}
}

func short(version string) string { return version[:min(len(version), 20)] }

func neverWritten(tb testing.TB, newStorage func(testing.TB) Storage) {
	c := newStorage(tb).client(tb)
	if o := c.read("config"); o.Version != "" || len(o.Data) > 0 {
		tb.Errorf("Read of an object that was never written: version %q, %d bytes; want none, and no error", o.Version, len(o.Data))
	}
	c.refused("with a version, of an object that was never written,", "config", "1")
	if all, err := c.List(context.Background()); err != nil || len(all) > 0 {
		tb.Errorf("List of an empty storage: %d objects, %v", len(all), err)
	}
}

func written(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	one, two := storage.client(tb), storage.client(tb)
	versions := map[string]bool{}
	version := ""
	for i := range 5 {
		// As large as a page of 64 blocks, with what text formats may change.
		data := fmt.Sprintf("{\"writes\":%d}\n", i) + strings.Repeat("\tname: 'x' \"y\" <z> é \\n\r\n  \n", 800) + "\n"
		one.write("page-0000", data, version)
		for i, c := range []client{one, two, storage.client(tb)} {
			name := []string{"the client that wrote", "another client", "a new client"}[i]
			o := c.read("page-0000")
			if string(o.Data) != data {
				tb.Fatalf("%s reads %d bytes that differ from the %d that were written just before: "+
					"does it see every write at once, and are they kept byte by byte?", name, len(o.Data), len(data))
			}
			for i := range o.Data {
				o.Data[i] = 0 // it belongs to the caller
			}
			if version = o.Version; !o.Time.IsZero() && (time.Since(o.Time).Abs() > time.Minute || o.Time.Nanosecond() > 0) {
				tb.Errorf("Read has the time %s at %s; want whole seconds of the server's clock, or none", o.Time, time.Now())
			}
		}
		if version == "" || versions[version] {
			tb.Fatalf("after write %d the version is %q, which it was before: it must change with every write", i+1, short(version))
		}
		versions[version] = true
	}
}

func conditions(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	one, two := storage.client(tb), storage.client(tb)
	one.write("page-0000", "first\n", "")
	two.refused("on condition that there is no such object, twice,", "page-0000", "")
	first := two.read("page-0000").Version
	two.write("page-0000", "second\n", first)
	one.refused("with the version before", "page-0000", first)
	one.refused("with the version of another object", "page-0000", "x"+first)
	one.write("page-0001", "second\n", "")
}

func atOnce(tb testing.TB, newStorage func(testing.TB) Storage) {
	const n = 8
	storage := newStorage(tb)
	var clients [n]client
	for i := range clients {
		clients[i] = storage.client(tb)
	}
	for round := range 10 {
		version := clients[0].read("page-0000").Version
		var errs [n]error
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				_, errs[i] = c.Write(context.Background(), "page-0000", fmt.Appendf(nil, "%d by %d\n", round, i), version)
			})
		}
		all.Wait()
		winner, acknowledged := -1, 0
		for i, err := range errs {
			if err == nil {
				winner, acknowledged = i, acknowledged+1
			} else if !errors.Is(err, pages.ErrChanged) {
				tb.Errorf("one of %d writes at once: got error %v, want ErrChanged", n, err)
			}
		}
		o := clients[round%n].read("page-0000")
		if acknowledged != 1 || string(o.Data) != fmt.Sprintf("%d by %d\n", round, winner) {
			tb.Fatalf("of %d writes at once on one condition, %d succeeded, and the object is %q; want one: writes are not conditional",
				n, acknowledged, o.Data)
		}
	}
}

func list(tb testing.TB, newStorage func(testing.TB) Storage) {
	const n, workers = 1200, 16
	storage := newStorage(tb)
	one, two := storage.client(tb), storage.client(tb)
	name := func(i int) string { return fmt.Sprintf("page-%04d", i) }
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < n; i += workers {
				if _, err := one.Write(context.Background(), name(i), []byte(name(i)), ""); err != nil {
					tb.Errorf("Write: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	listed, err := two.List(context.Background())
	if err != nil || len(listed) != n {
		tb.Fatalf("List has %d of %d objects (%v): it must return all of them, however many pages its answer has", len(listed), n, err)
	}
	for i := range n {
		o, ok := listed[name(i)]
		if !ok || o.Data != nil && string(o.Data) != name(i) {
			tb.Fatalf("List has %q as %s", o.Data, name(i))
		}
		if i%100 == 0 && o.Version != two.read(name(i)).Version {
			tb.Fatalf("List has the version %q of %s, and Read has %q", short(o.Version), name(i), short(two.read(name(i)).Version))
		}
	}
	two.write(name(7), "next", two.read(name(7)).Version)
	if listed, err = one.List(context.Background()); err != nil || listed[name(7)].Version != one.read(name(7)).Version {
		tb.Errorf("List has an old version of an object that was written just before (%v)", err)
	}
}

func twoStorages(tb testing.TB, newStorage func(testing.TB) Storage) {
	one, two := newStorage(tb).client(tb), newStorage(tb).client(tb)
	one.write("config", "one\n", "")
	if two.read("config").Version != "" {
		tb.Fatalf("two storages share names: one reads what the other one has written")
	}
	two.write("config", "two\n", "")
	all, err := two.List(context.Background())
	if string(one.read("config").Data) != "one\n" || string(two.read("config").Data) != "two\n" || err != nil || len(all) != 1 {
		tb.Errorf("two storages share names: one replaces or lists what the other one has written (%d objects, %v)", len(all), err)
	}
}

// calls are all methods.
func (c client) calls() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Read": func(ctx context.Context) error { _, err := c.Read(ctx, "page-0000"); return err },
		"Write": func(ctx context.Context) error {
			_, err := c.Write(ctx, "page-0000", []byte("late\n"), "none")
			return err
		},
		"List": func(ctx context.Context) error { _, err := c.List(ctx); return err },
	}
}

func over(tb testing.TB, newStorage func(testing.TB) Storage) {
	c := newStorage(tb).client(tb)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Write(ctx, "page-0001", []byte("late\n"), ""); err == nil && c.read("page-0001").Version == "" {
		tb.Fatalf("Write returned no error, and nothing was written: an error is swallowed")
	}
	for name, call := range c.calls() {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			tb.Errorf("%s with a context that is over: got error %v, want %v", name, err, context.Canceled)
		}
	}
}

func stalled(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	if storage.Stall == nil {
		tb.Skip("Storage.Stall is nil")
	}
	c := storage.client(tb)
	c.write("page-0000", "first\n", "")
	const wait, patience = 200 * time.Millisecond, 5 * time.Second
	for name, call := range c.calls() {
		for _, cancelled := range []bool{false, true} {
			want := context.DeadlineExceeded
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			if cancelled {
				want = context.Canceled
				ctx, cancel = context.WithCancel(context.Background())
				time.AfterFunc(wait, cancel)
			}
			resume := storage.Stall()
			done := make(chan error, 1)
			go func() { done <- call(ctx) }()
			select {
			case err := <-done:
				if resume(); !errors.Is(err, want) {
					tb.Errorf("%s that the server does not answer: got error %v, want %v: an error must wrap the context's", name, err, want)
				}
			case <-time.After(wait + patience):
				resume()
				tb.Fatalf("%s that the server does not answer had not returned %s after its context was over: it must obey its context in flight, too; "+
					"then it returned %v", name, patience, <-done)
			}
			cancel()
		}
	}
	if string(c.read("page-0000").Data) != "first\n" {
		tb.Error("a late Write with another version was made")
	}
}

func deleted(tb testing.TB, newStorage func(testing.TB) Storage) {
	storage := newStorage(tb)
	if storage.Delete == nil {
		tb.Skip("Storage.Delete is nil")
	}
	c := storage.client(tb)
	c.write("page-0000", "first\n", "")
	old := c.read("page-0000").Version
	if err := storage.Delete("page-0000"); err != nil {
		tb.Fatalf("delete: %v", err)
	}
	if o := c.read("page-0000"); o.Version != "" || len(o.Data) > 0 {
		tb.Errorf("Read of a deleted object has the version %q and %d bytes: a deletion that the server remembers is no object", short(o.Version), len(o.Data))
	}
	if all, err := c.List(context.Background()); err != nil || len(all) > 0 {
		tb.Errorf("List has a deleted object (%d objects, %v)", len(all), err)
	}
	c.refused("with the version that a deleted object had", "page-0000", old)
	c.write("page-0000", "second\n", "")
}
