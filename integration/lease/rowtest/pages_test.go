package rowtest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// onPages is stores on a server in memory, with so many blocks on a page.
func onPages(perPage uint32, now func() time.Time) Harness {
	return Harness{
		KnowsTime: now != nil,
		New: func(testing.TB) Storage {
			server := &leasetest.Server{Memory: driver.Memory{Clock: now}}
			return Storage{
				Open: func() (driver.Store, error) {
					return driver.New(server, driver.Layout{Name: "pages", BlocksPerPage: perPage})
				},
				Delete: func() error { server.Delete(""); return nil },
			}
		},
	}
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
	driver.Objects
	network leasetest.BadNetwork
}

// send takes the time of a request.
func (d *distant) send(request, again func()) error {
	time.Sleep(rand.N(3 * time.Millisecond))
	return d.network.Send(func(bool) error { request(); return nil }, again)
}

func (d *distant) Read(ctx context.Context, name string) (o driver.Object, err error) {
	lost := d.send(func() { o, err = d.Objects.Read(ctx, name) }, func() {})
	return o, cmp.Or(lost, err)
}

func (d *distant) Write(_ context.Context, name string, data []byte, version string) (o driver.Object, err error) {
	write := func() (driver.Object, error) { return d.Objects.Write(context.Background(), name, data, version) }
	again := func() { _, _ = write() }
	if rand.IntN(20) == 0 { // repeated before it is answered, and others write in between
		again()
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	lost := d.send(func() { o, err = write() }, again)
	return o, cmp.Or(lost, err)
}

// What clients see over a bad network is linearizable, with those calls that had no answer carried
// out or not. Servers have clocks or none.
func TestPagesOverABadNetwork(t *testing.T) {
	unanswered := 0
	for seed := range uint64(*seeds) {
		h := overABadNetwork(t, seed, false)
		_, unknown := h.count()
		unanswered += unknown
		if !h.check(t, time.Minute) || t.Failed() {
			t.Fatalf("seed %d: linearizable is not shown", seed)
		}
	}
	if unanswered == 0 {
		t.Error("every call was answered")
	}
	t.Logf("%d calls without an answer", unanswered)
}

var seeds = flag.Int("seeds", 400, "how many histories of pages over a bad network to check")

func overABadNetwork(t *testing.T, seed uint64, ignoresVersions bool) (h *history) {
	t.Helper()
	server := new(leasetest.Server)
	if ignoresVersions {
		server.Accepts = func(string, bool) bool { return true }
	}
	if seed%4 > 0 {
		server.Clock = time.Now
	}
	network := &distant{Objects: server, network: leasetest.BadNetwork{Every: 20}}
	synctest.Test(t, func(t *testing.T) { // so that every goroutine has its time
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		open := func(s driver.Objects) Storage {
			layout := driver.Layout{Name: "pages", BlocksPerPage: uint32(1 + seed%3)}
			return Storage{Open: func() (driver.Store, error) { return driver.New(s, layout) }}
		}
		open(server).Create(t, few)
		var clients []driver.Store
		for range 4 {
			clients = append(clients, open(network).Client(t))
		}
		h = load{calls: 20, seed: seed, timeout: time.Minute, pause: time.Second / 2}.run(clients...)
	})
	return h
}

func TestPagesOfAServerThatIgnoresVersions(t *testing.T) {
	for seed := range uint64(50) {
		v := &verdicts{TB: t}
		if overABadNetwork(t, seed, true).check(v, time.Minute); v.Failed() {
			return
		}
	}
	t.Error("not seen")
}
