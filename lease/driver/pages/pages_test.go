package pages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// wire is between a client and the server.
type wire struct {
	pages.Server
	mu     sync.Mutex
	before func(name string) // each read, one at a time
	write  func(name string, do func() (pages.Object, error)) (pages.Object, error)
	edit   func(p map[string]any) // each page that is written
	bare   bool                   // lists have no data
}

func (w *wire) List(ctx context.Context) (map[string]pages.Object, error) {
	all, err := w.Server.List(ctx)
	if w.bare {
		all = bare(all)
	}
	return all, err
}

// bare is what a server lists that lists versions only.
func bare(all map[string]pages.Object) map[string]pages.Object {
	for name, o := range all {
		all[name] = pages.Object{Version: o.Version}
	}
	return all
}

func (w *wire) Read(ctx context.Context, name string) (pages.Object, error) {
	if w.before != nil {
		w.mu.Lock()
		w.before(name)
		w.mu.Unlock()
	}
	return w.Server.Read(ctx, name)
}

func (w *wire) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	if w.edit != nil && name != "config" {
		data = pages.Edit(data, w.edit)
	}
	do := func() (pages.Object, error) { return w.Server.Write(ctx, name, data, version) }
	if w.write == nil {
		return do()
	}
	return w.write(name, do)
}

// few is blocks on pages of one block each.
func few(blocks uint32) driver.NodeRange {
	return driver.NodeRange{First: 0, Nodes: blocks << 3, BlockSize: 8}
}

func open(s pages.Server, perPage uint32, nodes driver.NodeRange) *pages.Store {
	return must(pages.New(s, pages.Layout{Name: "teststore", BlocksPerPage: perPage}, nodes))
}

func must(s *pages.Store, err error) *pages.Store {
	if err != nil {
		panic(err)
	}
	return s
}

func request(now time.Time) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: time.Minute, Owner: "pod-1"}
}

func mustAcquire(t *testing.T, s lease.Store, r lease.Request) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sameHome returns a fresh nonce that tries the same page first.
func sameHome(s *pages.Store, nonce string) string {
	for {
		if other := lease.NewNonce(); s.Order(other)[0] == s.Order(nonce)[0] {
			return other
		}
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// definite reports whether an error says that nothing was written.
func definite(err error) bool {
	return errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrNoFreeNode) ||
		errors.Is(err, lease.ErrClockAhead) || errors.Is(err, lease.ErrInvalidRequest)
}

// The bytes are read by other versions of the library.
func TestFormat(t *testing.T) {
	server := &pagestest.Server{}
	s := open(server, 2, few(4))
	r := request(t0)
	for i, nonce := range []string{"00", "01", "02", "04"} {
		r.Nonce, r.Owner = strings.Repeat(nonce, 16), fmt.Sprintf(`pod<%d>`, i)
		mustAcquire(t, s, r)
	}
	for name, want := range map[string]string{
		"config": `{"format":1,"block_size":8,"blocks_per_page":2}
{"crc32c":"f92ad377"}
`,
		"page-0000": `{"format":1,"block_size":8,"blocks_per_page":2,"page":0,"writes":2,"recent":["01010101010101010101010101010101","04040404040404040404040404040404"],"releases":0}
{"node":0,"version":1,"from":"2026-05-04T03:02:01Z","until":"2026-05-04T03:03:01Z","nonce":"01010101010101010101010101010101","owner":"pod<1>"}
{"node":8,"version":1,"from":"2026-05-04T03:02:01Z","until":"2026-05-04T03:03:01Z","nonce":"04040404040404040404040404040404","owner":"pod<3>"}
{"crc32c":"00d9ca43"}
`,
	} {
		o, err := server.Read(t.Context(), name)
		if err != nil || string(o.Data) != want {
			t.Errorf("%s: got\n%swant\n%s", name, o.Data, want)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		perPage uint32
		owner   string
		most    int
	}{
		{64, "checkout-5d9f8c7b4-x2x9z/1/2026-05-04T03:02:01Z", 20 << 10},
		{16, strings.Repeat("<", 128), 64 << 10}, // six bytes each; an annotation has 256 KiB
	} {
		server := &pagestest.Server{}
		s := open(server, c.perPage, few(c.perPage))
		for range c.perPage {
			r := request(t0)
			r.Owner = c.owner
			mustAcquire(t, s, r)
		}
		o, err := server.Read(t.Context(), "page-0000")
		if err != nil || len(o.Data) > c.most {
			t.Errorf("%d blocks: %d bytes, want at most %d; %v", c.perPage, len(o.Data), c.most, err)
		}
		t.Logf("%d blocks: %d bytes", c.perPage, len(o.Data))
	}
}

// What somebody edited is refused, and nothing is written over it.
func TestEdited(t *testing.T) {
	for _, c := range []struct {
		name, object string
		edit         func([]byte) []byte
		want         error
	}{
		{"an end", "page-0000", replace("03:03:01Z", "03:02:01Z"), pages.ErrEdited},
		{"an owner", "page-0000", replace("pod-1", "pod-2"), pages.ErrEdited},
		{"cut off", "page-0000", func(b []byte) []byte { return b[:len(b)/2] }, pages.ErrEdited},
		{"empty", "page-0000", func([]byte) []byte { return []byte("\n") }, pages.ErrEdited},
		{"no checksum", "page-0000", func([]byte) []byte { return []byte(`{"format":1,"page":0}`) }, pages.ErrEdited},
		{"not ours", "page-0000", func([]byte) []byte { return []byte(`{"kind":"Lease"}`) }, lease.ErrSchemaVersion},
		{"not JSON", "page-0000", func([]byte) []byte { return []byte("<html>") }, pages.ErrEdited},
		{"newer", "page-0000", func([]byte) []byte { return []byte(`{"format":2}`) }, lease.ErrSchemaVersion},
		{"newer config", "config", func([]byte) []byte { return []byte(`{"format":2}`) }, lease.ErrSchemaVersion},
		{"config", "config", replace("8", "16"), pages.ErrEdited},
		{"config without pages", "config", with(func(o map[string]any) { o["blocks_per_page"] = 0 }), pages.ErrEdited},
		{"another page", "page-0000", with(func(o map[string]any) { o["page"] = 3 }), pages.ErrEdited},
		{"another block size", "page-0000", with(func(o map[string]any) { o["block_size"] = 16 }), lease.ErrBlockSize},
		{"a block of another page", "page-0000", withBlock(func(b map[string]any) { b["node"] = 512 }), pages.ErrEdited},
		{"no version", "page-0000", withBlock(func(b map[string]any) { b["version"] = 0 }), pages.ErrEdited},
		{"no end", "page-0000", withBlock(func(b map[string]any) { delete(b, "until") }), pages.ErrEdited},
		{"an end before the start", "page-0000", withBlock(func(b map[string]any) { b["until"] = "2026-01-01T00:00:00Z" }), pages.ErrEdited},
		{"half a second", "page-0000", withBlock(func(b map[string]any) { b["until"] = "2027-01-01T00:00:00.5Z" }), pages.ErrEdited},
		{"a block twice", "page-0000", with(func(o map[string]any) {
			blocks := o["blocks"].([]map[string]any)
			o["blocks"] = append(blocks, blocks[0])
		}), pages.ErrEdited},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &pagestest.Server{}
			g := mustAcquire(t, open(server, 64, few(64)), request(t0))
			o, err := server.Read(t.Context(), c.object)
			if err != nil {
				t.Fatal(err)
			}
			o.Data = c.edit(slices.Clone(o.Data))
			if _, err := server.Write(t.Context(), c.object, o.Data, o.Version); err != nil {
				t.Fatal(err)
			}
			s, writes := open(server, 64, few(64)), server.Writes
			_, err = s.Acquire(t.Context(), request(t0))
			wantErr(t, "acquire", err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.object) {
				t.Errorf("the error does not name %s: %v", c.object, err)
			}
			t.Log(err)
			_, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
			wantErr(t, "renew", err, c.want)
			wantErr(t, "release", s.Release(t.Context(), g, lease.NewNonce(), t0), c.want)
			_, err = s.Get(t.Context(), g.Node)
			wantErr(t, "get", err, c.want)
			_, err = s.List(t.Context())
			wantErr(t, "list", err, c.want)
			wantErr(t, "raise", s.Raise(t.Context(), t0.Add(time.Hour)), c.want)
			if server.Writes != writes {
				t.Errorf("%d writes", server.Writes-writes)
			}
		})
	}
}

func replace(old, with string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(with)) }
}

func with(edit func(map[string]any)) func([]byte) []byte {
	return func(b []byte) []byte { return pages.Edit(b, edit) }
}

func withBlock(edit func(map[string]any)) func([]byte) []byte {
	return with(func(o map[string]any) { edit(o["blocks"].([]map[string]any)[0]) })
}

// A process that was started before the store was replaced writes nothing.
func TestReplacedStore(t *testing.T) {
	for _, c := range []struct {
		name      string
		perPage   uint32
		blockSize uint32
		want      error
	}{
		{"another block size", 64, 16, lease.ErrBlockSize},
		{"other pages", 16, 8, lease.ErrBlockSize},
		{"deleted", 0, 0, nil},
	} {
		server := &pagestest.Server{}
		old := open(server, 64, driver.NodeRange{})
		mustAcquire(t, old, request(t0))
		server.Delete("")
		if c.perPage > 0 {
			mustAcquire(t, open(server, c.perPage, driver.NodeRange{BlockSize: c.blockSize}), request(t0))
		}
		writes := server.Writes
		for range 50 { // on pages that are there, and on others
			_, err := old.Acquire(t.Context(), request(t0))
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("%s: got error %v, want %v", c.name, err, c.want)
			}
		}
		if server.Writes != writes {
			t.Errorf("%s: %d writes", c.name, server.Writes-writes)
		}
	}
}

// A store that has pages and no configuration gets no other one.
func TestDeletedConfiguration(t *testing.T) {
	server := &pagestest.Server{}
	old := open(server, 64, few(256))
	mustAcquire(t, old, request(t0))
	server.Delete("config")
	writes := server.Writes
	for name, s := range map[string]*pages.Store{
		"the old process":    old,
		"another block size": open(server, 64, driver.NodeRange{BlockSize: 64}),
	} {
		refused := 0
		for range 20 {
			if _, err := s.Acquire(t.Context(), request(t0)); err != nil {
				refused++
				t.Log(err)
			}
		}
		if refused == 0 {
			t.Errorf("%s is not refused", name)
		}
		if name == "another block size" && server.Writes != writes {
			t.Errorf("%s: %d writes", name, server.Writes-writes)
		}
		writes = server.Writes
	}
}

// A store that is not nearly full takes two requests for each call.
func TestRequests(t *testing.T) {
	server := &pagestest.Server{Now: func() time.Time { return t0 }}
	s := open(server, 64, driver.NodeRange{})
	count := func(what string, reads, writes, lists int, f func()) {
		t.Helper()
		r, w, l := server.Reads, server.Writes, server.Lists
		if f(); server.Reads-r != reads || server.Writes-w != writes || server.Lists-l != lists {
			t.Errorf("%s: %d reads, %d writes, %d lists; want %d, %d, %d",
				what, server.Reads-r, server.Writes-w, server.Lists-l, reads, writes, lists)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := request(t0)
	var g lease.Grant
	count("the first acquire of a store", 4, 2, 1, func() { g = mustAcquire(t, s, r) })
	count("the same again", 1, 0, 0, func() { mustAcquire(t, s, r) })
	r.Nonce = sameHome(s, r.Nonce)
	count("acquire", 1, 1, 0, func() { mustAcquire(t, s, r) })
	count("renew", 1, 1, 0, func() {
		var err error
		g, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		check(err)
	})
	count("get", 1, 0, 0, func() {
		_, err := s.Get(t.Context(), g.Node)
		check(err)
	})
	count("release", 1, 1, 0, func() { check(s.Release(t.Context(), g, lease.NewNonce(), t0)) })
	count("list", 1, 0, 1, func() {
		_, err := s.List(t.Context())
		check(err)
	})
	count("raise", 257, 256, 0, func() { check(s.Raise(t.Context(), t0)) })
	count("acquire by another process", 2, 1, 0, func() {
		s = open(server, 64, driver.NodeRange{})
		mustAcquire(t, s, r)
	})
	check(s.Raise(t.Context(), t0.Add(time.Hour)))
	count("no free block", 257, 0, 1, func() {
		_, err := s.Acquire(t.Context(), request(t0))
		wantErr(t, "acquire", err, lease.ErrNoFreeNode)
	})
	bare := open(&wire{Server: server, bare: true}, 64, driver.NodeRange{})
	count("list by versions", 257, 0, 1, func() {
		_, err := bare.List(t.Context())
		check(err)
	})

	// What this process wrote last is known, unless the time must be read.
	server = &pagestest.Server{}
	s = open(server, 64, driver.NodeRange{})
	g = mustAcquire(t, s, request(t0))
	count("renew without a clock", 0, 1, 0, func() {
		var err error
		g, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		check(err)
	})
	other := request(t0)
	for s.Order(other.Nonce)[0] != int(g.Node)/8/64 {
		other.Nonce = lease.NewNonce()
	}
	mustAcquire(t, open(server, 64, driver.NodeRange{}), other)
	count("renew after another process wrote the page", 0, 2, 0, func() {
		var err error
		g, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0.Add(time.Hour)))
		check(err)
	})
	count("release without a clock", 0, 1, 0, func() { check(s.Release(t.Context(), g, lease.NewNonce(), t0)) })
}

// A fleet that has 61 % of the blocks takes little more than two requests each,
// and even the last of those that have 98 % find a block soon: as many as 10000
// and 16000 are of 16384, in a quarter of them.
func TestRequestsOfAFleet(t *testing.T) {
	for _, perPage := range []uint32{16, 64} {
		server := &pagestest.Server{}
		s := open(server, perPage, driver.NodeRange{BlockSize: 4 * driver.DefaultBlockSize})
		if err := s.Raise(t.Context(), t0); err != nil { // creates the pages
			t.Fatal(err)
		}
		n := 0
		for _, c := range []struct {
			to            int
			reads, writes float64 // at most
		}{{2500, 1.15, 1.1}, {3750, 2, 1.5}, {4000, 8, 2.5}} {
			from, reads, writes := float64(n), server.Reads, server.Writes
			for ; n < c.to; n++ {
				mustAcquire(t, s, request(t0))
			}
			r, w := float64(server.Reads-reads)/(float64(n)-from), float64(server.Writes-writes)/(float64(n)-from)
			if r > c.reads || w > c.writes || server.Lists > 1 { // one by the first use
				t.Errorf("%d a page, up to %d: %.2f reads and %.2f writes each, %d lists", perPage, n, r, w, server.Lists)
			}
			t.Logf("%d a page, up to %d: %.2f reads and %.2f writes each", perPage, n, r, w)
		}
	}
}

var errLost = errors.New("the answer was lost")

// While there always is a free block, on another page than the one that is read
// next, an Acquire does not say that there is none.
func TestFreeBlockThatMoves(t *testing.T) {
	for name, wrong := range map[string]struct {
		deaf bool
		edit func(map[string]any)
	}{
		"":                         {},
		"without listing":          {deaf: true},
		"releases are not counted": {edit: func(p map[string]any) { p["releases"] = 0 }},
	} {
		server := &pagestest.Server{}
		others := open(&wire{Server: server, edit: wrong.edit}, 1, few(2))
		var held [2]lease.Grant // by page
		take := func() {
			g := mustAcquire(t, others, request(t0))
			held[g.Node/8] = g
		}
		take()
		take()
		moves := 0
		var s pages.Server = &wire{Server: server, before: func(name string) {
			if moves++; moves > 20 || name == "config" {
				return
			}
			at := 0
			if name == pages.PageName(1) {
				at = 1
			}
			if held[at].Nonce == "" {
				take()
			}
			if g := held[1-at]; g.Nonce != "" {
				if err := others.Release(t.Context(), g, lease.NewNonce(), t0); err != nil {
					t.Fatal(err)
				}
				held[1-at] = lease.Grant{}
			}
		}, bare: true}
		if wrong.deaf {
			s = &deaf{s, map[string]pages.Object{}}
		}
		_, err := open(s, 1, few(2)).Acquire(t.Context(), request(t0))
		if none := errors.Is(err, lease.ErrNoFreeNode); none != (name != "") || err != nil && !none {
			t.Errorf("%s: %v after %d moves", name, err, moves)
		}
	}
}

// deaf is told that nothing has changed since it read.
type deaf struct {
	pages.Server
	read map[string]pages.Object
}

func (d *deaf) Read(ctx context.Context, name string) (pages.Object, error) {
	o, err := d.Server.Read(ctx, name)
	d.read[name] = o
	return o, err
}

func (d *deaf) List(context.Context) (map[string]pages.Object, error) { return bare(d.read), nil }

// Renewals change the pages of a full store all the time. It is full all the
// same.
func TestFullStoreThatIsRenewed(t *testing.T) {
	server := &pagestest.Server{}
	s := open(server, 1, few(8))
	held := map[string]lease.Grant{}
	for range 8 {
		g := mustAcquire(t, s, request(t0))
		held[pages.PageName(int(g.Node/8))] = g
	}
	w := &wire{Server: server, before: func(string) {
		for name, g := range held {
			g, err := s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0))
			if err != nil {
				t.Error(err)
			}
			held[name] = g
		}
	}}
	lists := server.Lists
	_, err := open(w, 1, few(8)).Acquire(t.Context(), request(t0))
	if wantErr(t, "acquire", err, lease.ErrNoFreeNode); server.Lists != lists+1 {
		t.Errorf("%d lists, want 1", server.Lists-lists)
	}
}

// twice makes each write, and answers as a server does to a second copy of it.
func twice(_ string, do func() (pages.Object, error)) (pages.Object, error) {
	_, _ = do()
	return do()
}

// A renewal or a release that the network repeats was written, and its answer
// says that it was not: then the call must not say either.
func TestRepeatedWrite(t *testing.T) {
	server := &pagestest.Server{}
	good := open(server, 1, few(1))
	bad := open(&wire{Server: server, write: twice}, 1, few(1))
	g, err := bad.Acquire(t.Context(), request(t0))
	if err != nil || server.Writes != 4 { // the configuration, too
		t.Errorf("acquire: %v after %d writes", err, server.Writes)
	}
	next := lease.NewNonce()
	if _, err := bad.Renew(t.Context(), g, renewal(next, t0.Add(time.Hour))); err == nil || definite(err) {
		t.Errorf("renew: got error %v, want one that is not definite", err)
	} else {
		t.Log(err)
	}
	got, err := good.Get(t.Context(), g.Node)
	if err != nil || got.Nonce != next || got.Version != 2 {
		t.Errorf("get: %+v, %v", got, err)
	}
	// The block is granted again before the release reads the page.
	bad = open(&wire{Server: server, write: func(name string, do func() (pages.Object, error)) (pages.Object, error) {
		o, err := twice(name, do)
		mustAcquire(t, good, request(t0))
		return o, err
	}}, 1, few(1))
	if err := bad.Release(t.Context(), got, lease.NewNonce(), t0); err == nil || definite(err) {
		t.Errorf("release: got error %v, want one that is not definite", err)
	}
}

// A page remembers few writes, but a block's nonce stays.
func TestRepeatedWriteAmongMany(t *testing.T) {
	server := &pagestest.Server{}
	good := open(server, 64, few(64))
	g, other := mustAcquire(t, good, request(t0)), mustAcquire(t, good, request(t0))
	bad := open(&wire{Server: server, write: func(_ string, do func() (pages.Object, error)) (pages.Object, error) {
		if _, err := do(); err != nil {
			t.Error(err)
		}
		for range 40 {
			var err error
			if other, err = good.Renew(t.Context(), other, renewal(lease.NewNonce(), t0.Add(time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		return do()
	}}, 64, few(64))
	if _, err := bad.Renew(t.Context(), g, renewal(lease.NewNonce(), t0.Add(time.Hour))); err == nil || definite(err) {
		t.Errorf("got error %v, want one that is not definite", err)
	}
}

// Two copies of a process that renew with one nonce are not both told yes.
func TestCopies(t *testing.T) {
	server := &pagestest.Server{}
	s := open(server, 64, few(64))
	for name, renew := range map[string]func(s lease.Store, g lease.Grant, next string) error{
		"": func(s lease.Store, g lease.Grant, next string) error {
			_, err := s.Renew(t.Context(), g, renewal(next, t0.Add(time.Hour)))
			return err
		},
		"who finds its nonce says yes": func(s lease.Store, g lease.Grant, next string) error {
			_, err := s.Renew(t.Context(), g, renewal(next, t0.Add(time.Hour)))
			if got, getErr := s.Get(t.Context(), g.Node); getErr == nil && got.Nonce == next {
				return nil
			}
			return err
		},
	} {
		g := mustAcquire(t, s, request(t0))
		next := lease.NewNonce()
		var first error
		other := open(&wire{Server: server, write: func(_ string, do func() (pages.Object, error)) (pages.Object, error) {
			first = renew(s, g, next)
			return do()
		}}, 64, few(64))
		second := renew(other, g, next)
		if both := first == nil && second == nil; both != (name != "") {
			t.Errorf("%s: %v and %v", name, first, second)
		}
	}
}

// A write without an answer is not made again.
func TestUnknownWritesAreNotRepeated(t *testing.T) {
	server := &pagestest.Server{}
	good := open(server, 64, few(64))
	g := mustAcquire(t, good, request(t0))
	for _, made := range []bool{true, false} {
		writes := 0
		s := open(&wire{Server: server, write: func(_ string, do func() (pages.Object, error)) (pages.Object, error) {
			if writes++; made {
				_, _ = do()
			}
			return pages.Object{}, errLost
		}}, 64, few(64))
		for name, call := range map[string]func() error{
			"acquire": func() error { _, err := s.Acquire(t.Context(), request(t0)); return err },
			"renew":   func() error { _, err := s.Renew(t.Context(), g, renewal(lease.NewNonce(), t0)); return err },
			"release": func() error { return s.Release(t.Context(), g, lease.NewNonce(), t0) },
			"raise":   func() error { return s.Raise(t.Context(), t0) },
		} {
			b := mustAcquire(t, good, request(t0))
			g, writes = b, 0
			if err := call(); !errors.Is(err, errLost) || definite(err) || writes != 1 {
				t.Errorf("%s: error %v after %d writes", name, err, writes)
			}
		}
	}
}

// The server sends whole seconds: the last one may be nearly over.
func TestClock(t *testing.T) {
	server := &pagestest.Server{Now: func() time.Time { return t0.Add(900 * time.Millisecond) }}
	s := open(server, 64, few(64))
	r := request(t0.Add(lease.MaxClockAhead + 900*time.Millisecond))
	g := mustAcquire(t, s, r)
	_, err := s.Acquire(t.Context(), request(t0.Add(lease.MaxClockAhead+1001*time.Millisecond)))
	wantErr(t, "acquire", err, lease.ErrClockAhead)
	latest := t0.Add(lease.MaxTTL + lease.MaxClockAhead + time.Second)
	if g, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), latest)); err != nil {
		t.Error(err)
	}
	_, err = s.Renew(t.Context(), g, renewal(lease.NewNonce(), latest.Add(time.Millisecond)))
	wantErr(t, "renew", err, lease.ErrClockAhead)

	server.Now = nil
	mustAcquire(t, s, request(t0.Add(9*time.Hour)))
}

// A client may be gone after any of its requests, the last of which is made, or
// not, or late. Whoever asks again finds its block, the others lose none, and an
// operator can always raise the store.
func TestGoneAfterAnyRequest(t *testing.T) {
	for _, full := range []bool{false, true} {
		gone := 0
		for done := false; !done; gone++ {
			for _, fate := range []string{"made", "not made", "late"} {
				done = goneAfter(t, gone, fate, full)
			}
		}
		t.Logf("full home %t: %d requests", full, gone-1)
	}
}

// goneAfter has a client gone after so many requests, and reports whether it
// had made all of them before.
func goneAfter(t *testing.T, requests int, fate string, full bool) bool {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("gone after %d requests, full home %t, the last one %s: %s", requests, full, fate, fmt.Sprintf(format, args...))
	}
	server := &pagestest.Server{}
	g := &gate{server: server, left: requests, fate: fate}
	s, other := open(g, 1, few(3)), open(server, 1, few(3))
	r := request(t0)
	stays := r
	if full {
		mustAcquire(t, other, request(t0)) // configures it
		stays.Nonce = sameHome(other, r.Nonce)
		mustAcquire(t, other, stays)
	}
	held := func() (n int) {
		for _, b := range mustList(t, other) {
			if b.Nonce == r.Nonce {
				n++
			}
		}
		return n
	}

	grant, err := s.Acquire(t.Context(), r)
	if err != nil {
		grant = mustAcquire(t, other, r)
	}
	g.late()
	if got := mustAcquire(t, other, r); got != grant || held() != 1 {
		fail("%d blocks, %+v and %+v", held(), grant, got)
	}
	change := func(what string, call func(s *pages.Store, g lease.Grant, next string) (lease.Grant, error)) {
		next := lease.NewNonce()
		var got lease.Grant
		if got, err = call(s, grant, next); err != nil {
			if definite(err) {
				fail("%s: %v", what, err)
			}
			if got, _ = other.Get(t.Context(), grant.Node); got.Nonce != next {
				if got != grant {
					fail("%s: %+v, was %+v", what, got, grant)
				}
				if got, err = call(other, grant, lease.NewNonce()); err != nil {
					fail("%s again: %v", what, err)
				}
			}
			g.late()
		}
		if grant, _ = other.Get(t.Context(), got.Node); grant != got {
			fail("%s: %+v, was %+v", what, grant, got)
		}
	}
	change("renew", func(s *pages.Store, g lease.Grant, next string) (lease.Grant, error) {
		return s.Renew(t.Context(), g, renewal(next, t0.Add(time.Hour)))
	})
	change("release", func(s *pages.Store, g lease.Grant, next string) (lease.Grant, error) {
		err := s.Release(t.Context(), g, next, t0.Add(time.Second))
		if err != nil {
			return lease.Grant{}, err
		}
		return s.Get(t.Context(), g.Node)
	})
	if full {
		if got := mustAcquire(t, other, stays); got.Version != 1 || !got.Start.Equal(t0) {
			fail("another holder has %+v", got)
		}
	}
	until := t0.Add(2 * time.Hour)
	if err = s.Raise(t.Context(), until); err != nil {
		if err := other.Raise(t.Context(), until); err != nil {
			fail("raise: %v", err)
		}
	}
	g.late()
	if blocks := mustList(t, other); len(blocks) != 3 || slices.ContainsFunc(blocks, func(b lease.Block) bool {
		return b.GrantedUntil.Before(until) || b.Nonce != ""
	}) {
		fail("raised: %+v", blocks)
	}
	return g.left > 0
}

// gate lets some requests pass.
type gate struct {
	server pages.Server
	mu     sync.Mutex // a raise makes several requests at once
	left   int
	fate   string // of the last request
	then   func() // the last request, if it is late
}

func (g *gate) late() {
	if g.then != nil {
		g.then()
	}
	g.then = nil
}

func (g *gate) pass(do func()) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left--
	switch {
	case g.left > 0:
		do()
		return nil
	case g.left == 0 && g.fate == "made":
		do()
	case g.left == 0 && g.fate == "late":
		g.then = do
	}
	return errLost
}

func mustList(t *testing.T, s *pages.Store) []lease.Block {
	t.Helper()
	blocks, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func (g *gate) Read(ctx context.Context, name string) (o pages.Object, err error) {
	var got pages.Object
	if lost := g.pass(func() { got, err = g.server.Read(ctx, name) }); lost != nil {
		return o, lost
	}
	return got, err
}

func (g *gate) Write(ctx context.Context, name string, data []byte, version string) (o pages.Object, err error) {
	var got pages.Object
	if lost := g.pass(func() { got, err = g.server.Write(ctx, name, data, version) }); lost != nil {
		return o, lost
	}
	return got, err
}

func (g *gate) List(ctx context.Context) (all map[string]pages.Object, err error) {
	var got map[string]pages.Object
	if lost := g.pass(func() { got, err = g.server.List(ctx) }); lost != nil {
		return nil, lost
	}
	return got, err
}

// renewal returns the request that moves a grant's end to end.
func renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}
