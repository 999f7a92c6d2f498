//go:build unix

// Package processes runs processes on a store while its server fails: see [Run].
package processes

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

const (
	workers = 8
	nodes   = 48 * 8 // of 48 blocks, so few that processes meet
	// minMade is the least number of IDs for a meaningful test.
	minMade = 100_000
)

// Run creates the store at the first URL, and runs eight processes on its 48 blocks, which generate
// IDs as fast as they can, at one URL after the other. For some seconds per round, it kills, stops
// and restarts them, and makes the store unreachable. It collects every ID and checks that no two
// of a history are equal, and that no second of a node is used by two processes in one history.
// After each round all processes must generate IDs again. Run stores 16 KB for each second of a
// node, not each ID.
//
// outage makes the store unreachable, calls during, and makes it reachable again; it is called
// twice per round. There are as many rounds as it takes to generate TRACEFLAKETEST_SOAK_IDS IDs, or
// one.
func Run(t *testing.T, outage func(during func()) error, urls ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	ids, err := strconv.Atoi(cmp.Or(os.Getenv("TRACEFLAKETEST_SOAK_IDS"), "0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Open(t, urls[0]).Create(t.Context(), lease.Description{Nodes: nodes},
		calls.Secret()); err != nil {
		t.Fatalf("create: %v", err)
	}
	f := &fleet{tb: t, urls: urls, codecs: map[string]*randflake.Codec{}, pages: map[second]*page{}}
	defer func() {
		for _, l := range f.all {
			_ = l.Kill()
		}
	}()
	began := time.Now()
	for i := range workers {
		f.start(i)
	}
	f.wait("at the start")
	rounds := 1
	for f.round(rounds, outage); f.count() < int64(ids); f.round(rounds, outage) {
		rounds++
	}
	f.mu.Lock()
	t.Logf("%d rounds in %s: %d processes, %d IDs in %d histories", rounds,
		time.Since(began).Round(time.Second), len(f.all), f.count(), len(f.codecs))
	f.mu.Unlock()
	if made := f.count(); made < minMade {
		t.Errorf("only %d IDs were generated", made)
	}
}

// round disturbs the processes once in every way.
func (f *fleet) round(n int, outage func(during func()) error) {
	// Two processes are stopped past the end of their leases; the others are killed, and restarted
	// at once. In the meantime the store is briefly unreachable.
	stopped := []int{n % workers, (n + 1) % workers}
	for _, i := range stopped {
		if err := f.lives[i].Signal(syscall.SIGSTOP); err != nil {
			f.tb.Fatal(err)
		}
	}
	ended := make(chan error)
	go func() {
		time.Sleep(workerTTL / 4)
		ended <- outage(func() { time.Sleep(workerTTL / 4) })
	}()
	for begin := time.Now(); time.Since(begin) < workerTTL+time.Second; {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		// one that was not stopped
		i := (n + len(stopped) + rand.IntN(workers-len(stopped))) % workers
		if err := f.lives[i].Kill(); err != nil {
			f.tb.Fatal(err)
		}
		f.start(i)
	}
	for _, i := range stopped {
		if err := f.lives[i].Signal(syscall.SIGCONT); err != nil {
			f.tb.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		f.tb.Fatal(err)
	}
	f.wait("after a short outage of the store")

	// The store is unreachable for longer than a lease lasts.
	if err := outage(func() { time.Sleep(workerTTL + workerTTL/4) }); err != nil {
		f.tb.Fatal(err)
	}
	f.wait("after an outage longer than a lease")
}

// fleet is the workers of one store.
type fleet struct {
	tb    testing.TB
	urls  []string
	lives [workers]*life // the present ones
	all   []*life        // also those that were killed

	mu     sync.Mutex
	codecs map[string]*randflake.Codec // of each history
	pages  map[second]*page
}

// life is one process of a worker, with the IDs that it generated.
type life struct {
	child.Server
	count atomic.Int64
}

type second struct {
	history string
	node    uint32
	unix    int64
}

// page has a bit for each ID of one node and second, which one life has generated.
type page struct {
	by   *life
	used [(1 << 17) / 64]uint64
}

// mark records new IDs of a history, and reports one whose second of a node another life has used,
// or that was generated before.
func (f *fleet) mark(l *life, b batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	codec := f.codecs[b.History]
	if codec == nil {
		var err error
		if codec, err = lease.HistoryCodec(calls.Secret(), b.History); err != nil {
			f.tb.Error(err)
			return
		}
		f.codecs[b.History] = codec
	}
	for _, encrypted := range b.IDs {
		id := codec.Decode(encrypted)
		at := second{b.History, id.Node, id.Time.Unix()}
		p := f.pages[at]
		if p == nil {
			p = &page{by: l}
			f.pages[at] = p
		}
		word, bit := &p.used[id.Sequence/64], uint64(1)<<(id.Sequence%64)
		if repeated := *word&bit != 0; (repeated || p.by != l) && !f.tb.Failed() {
			f.tb.Errorf("%s generated %+v, whose second %s has used; the same ID: %t", l.Name, id,
				p.by.Name, repeated)
		}
		*word |= bit
	}
	l.count.Add(int64(len(b.IDs)))
}

func (f *fleet) start(i int) {
	f.tb.Helper()
	l := new(life)
	out, in := io.Pipe()
	l.Name = fmt.Sprintf("process %d", len(f.all)+1)
	l.Command = func() *exec.Cmd {
		cmd := child.Self(worker, f.urls[i%len(f.urls)])
		cmd.Stdout = in
		return cmd
	}
	if err := l.Run(); err != nil {
		f.tb.Fatal(err)
	}
	f.lives[i], f.all = l, append(f.all, l)
	go func() {
		batches := gob.NewDecoder(out)
		for {
			var b batch
			if batches.Decode(&b) != nil {
				return
			}
			f.mark(l, b)
		}
	}()
}

// count returns the number of IDs generated so far.
func (f *fleet) count() (made int64) {
	for _, l := range f.all {
		made += l.count.Load()
	}
	return made
}

// wait waits until every process has generated another ID.
func (f *fleet) wait(when string) {
	f.tb.Helper()
	// on a busy machine, over a bad network, it takes many tries
	ctx, cancel := context.WithTimeout(f.tb.Context(), 90*time.Second)
	defer cancel()
	for _, l := range f.lives {
		before := l.count.Load()
		err := child.Ready(ctx, func(context.Context) error {
			if l.count.Load() == before {
				return errors.New("it generates no IDs " + when)
			}
			return nil
		}, &l.Server)
		if err != nil {
			f.tb.Fatalf("%s: %v: %s", l.Name, err, l.Output())
		}
	}
}

// Outage returns a function that kills a server, calls during, and starts the server again with the
// data it had.
func Outage(s interface {
	Kill() error
	Run() error
	Wait(context.Context) error
}) func(during func()) error {
	return func(during func()) error {
		killed := s.Kill()
		during()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(killed, s.Run(), s.Wait(ctx))
	}
}
