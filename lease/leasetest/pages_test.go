package leasetest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/randflake"
)

// onPages is stores on a server in memory, with so many blocks on a page.
func onPages(perPage uint32, now func() time.Time) Harness {
	return Harness{
		KnowsTime: now != nil,
		New: func(testing.TB) Storage {
			server := &pagestest.Server{Now: now}
			return Storage{
				Open: func() (driver.Store, error) {
					return pages.New(server, pages.Layout{Name: "pages", BlocksPerPage: perPage})
				},
				Delete: func() error { server.Delete(""); return nil },
			}
		},
	}
}

func TestMemory(t *testing.T) { Run(t, harness(func() driver.Store { return driver.EmptyMemory() })) }

func TestMemoryWithClock(t *testing.T) {
	h := harness(func() driver.Store { return driver.EmptyMemory(driver.WithClock(randflake.SystemClock{})) })
	h.KnowsTime = true
	Run(t, h)
}

func TestPages(t *testing.T) {
	for _, perPage := range []uint32{1, 3, 64} {
		t.Run(fmt.Sprint(perPage, " a page"), func(t *testing.T) { Run(t, onPages(perPage, time.Now)) })
	}
	t.Run("without a clock", func(t *testing.T) { Run(t, onPages(64, nil)) })
}

// distant is a server of pages on the other side of a bad network. A write may arrive long after its
// client gave up.
type distant struct {
	pages.Server
	network BadNetwork
	bare    bool // lists have versions only
}

// send takes the time of a request.
func (d *distant) send(request, again func()) error {
	time.Sleep(rand.N(3 * time.Millisecond))
	return d.network.Send(func(bool) error { request(); return nil }, again)
}

func (d *distant) Read(ctx context.Context, name string) (o pages.Object, err error) {
	lost := d.send(func() { o, err = d.Server.Read(ctx, name) }, func() {})
	return o, cmp.Or(lost, err)
}

func (d *distant) Write(_ context.Context, name string, data []byte, version string) (o pages.Object, err error) {
	write := func() (pages.Object, error) { return d.Server.Write(context.Background(), name, data, version) }
	again := func() { _, _ = write() }
	if rand.IntN(20) == 0 { // repeated before it is answered, and others write in between
		again()
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	lost := d.send(func() { o, err = write() }, again)
	return o, cmp.Or(lost, err)
}

func (d *distant) List(ctx context.Context) (listed map[string]pages.Object, err error) {
	lost := d.send(func() { listed, err = d.Server.List(ctx) }, func() {})
	for name, o := range listed {
		if d.bare {
			listed[name] = pages.Object{Version: o.Version}
		}
	}
	return listed, cmp.Or(lost, err)
}

// What clients see over a bad network is linearizable, with those calls that had no answer carried
// out or not. Servers have clocks or none, and list data or versions only.
func TestPagesOverABadNetwork(t *testing.T) {
	unanswered := 0
	for seed := range uint64(*seeds) {
		h, unknown := overABadNetwork(t, seed, false)
		unanswered += unknown
		if !h.Check(t, time.Minute) || t.Failed() {
			t.Fatalf("seed %d: linearizable is not shown", seed)
		}
	}
	if unanswered == 0 {
		t.Error("every call was answered")
	}
	t.Logf("%d calls without an answer", unanswered)
}

var seeds = flag.Int("seeds", 400, "how many histories of pages over a bad network to check")

func overABadNetwork(t *testing.T, seed uint64, ignoresVersions bool) (h *History, unknown int) {
	t.Helper()
	server := &pagestest.Server{}
	if ignoresVersions {
		server.Ignores = func(string) bool { return true }
	}
	if seed%4 > 0 {
		server.Now = time.Now
	}
	network := &distant{Server: server, network: BadNetwork{Every: 20}, bare: seed%2 > 0}
	synctest.Test(t, func(t *testing.T) { // so that every goroutine has its time
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		h = NewHistory(few)
		open := func(s pages.Server) Storage {
			layout := pages.Layout{Name: "pages", BlocksPerPage: uint32(1 + seed%3)}
			return Storage{Open: func() (driver.Store, error) { return pages.New(s, layout) }}
		}
		open(server).Create(t, Nodes(few))
		var clients []lease.Store
		for range 4 {
			clients = append(clients, h.Client(open(network).Client(t)))
		}
		Load{Calls: 20, Seed: seed, Timeout: time.Minute, Pause: time.Second / 2}.Run(clients, few)
	})
	_, unknown = h.Len()
	return h, unknown
}

func TestPagesOfAServerThatIgnoresVersions(t *testing.T) {
	for seed := range uint64(50) {
		h, _ := overABadNetwork(t, seed, true)
		v := &verdicts{TB: t}
		if h.Check(v, time.Minute); v.Failed() {
			return
		}
	}
	t.Error("not seen")
}
