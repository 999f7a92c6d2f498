//go:build unix

package processes

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
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
	Create(t, urls[0], lease.Description{Nodes: nodes})
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
	for _, l := range f.lives {
		if err := l.Terminate(); err != nil {
			t.Errorf("%s: %v: %s", l.Name, err, l.Output())
		}
	}
	made := f.count()
	t.Logf("%d rounds in %s: %d lives, %d IDs in %d histories; %d seconds of nodes in several",
		rounds, time.Since(began).Round(time.Second), len(f.all), made, len(f.codecs), f.shared())
	if made < minMade {
		t.Errorf("only %d IDs were generated", made)
	}
}

// round disturbs the processes once in every way.
func (f *fleet) round(n int, outage func(during func()) error) {
	// Two processes are stopped past the end of their leases; the others are killed, or ended in
	// an orderly way, and restarted at once. In the meantime the store is briefly unreachable.
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
		if l := f.lives[i]; rand.IntN(3) == 0 {
			_ = l.Terminate() // it may not have got as far as to handle the signal
		} else if err := l.Kill(); err != nil {
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

// shared counts the seconds of nodes that are used in several histories, under different keys.
func (f *fleet) shared() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[second]bool{}
	for at := range f.pages {
		at.history = ""
		if seen[at] {
			n++
		}
		seen[at] = true
	}
	return n
}

// fleet is the workers of one store.
type fleet struct {
	tb    testing.TB
	urls  []string
	lives [workers]*life // the present ones
	all   []*life

	mu     sync.Mutex
	codecs map[string]*randflake.Codec // of each history
	pages  map[second]*page
}

// life is one process of a worker, with the IDs that it generated.
type life struct {
	child.Server
	fleet *fleet
	rest  []byte // a part of a batch
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
func (f *fleet) mark(l *life, history string, ids []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	codec := f.codecs[history]
	if codec == nil {
		var err error
		if codec, err = lease.HistoryCodec(calls.Secret(), history); err != nil {
			f.tb.Error(err)
			return
		}
		f.codecs[history] = codec
	}
	for b := range slices.Chunk(ids, 8) {
		id := codec.Decode(randflake.ID(binary.BigEndian.Uint64(b)))
		at := second{history, id.Node, id.Time.Unix()}
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
}

func (f *fleet) start(i int) {
	f.tb.Helper()
	l := &life{fleet: f}
	l.Name = fmt.Sprintf("process %d", len(f.all)+1)
	l.Command = func() *exec.Cmd {
		cmd := child.Self(worker, f.urls[i%len(f.urls)])
		cmd.Stdout = l
		return cmd
	}
	if err := l.Run(); err != nil {
		f.tb.Fatal(err)
	}
	f.lives[i], f.all = l, append(f.all, l)
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
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
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

// Write records the IDs in a process's output.
func (l *life) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for len(l.rest) >= headerLen {
		n := int(binary.BigEndian.Uint32(l.rest[headerLen-4:]))
		end := headerLen + 8*n
		if len(l.rest) < end {
			break
		}
		l.fleet.mark(l, string(l.rest[:headerLen-4]), l.rest[headerLen:end])
		l.count.Add(int64(n))
		l.rest = append(l.rest[:0], l.rest[end:]...)
	}
	return len(b), nil
}
