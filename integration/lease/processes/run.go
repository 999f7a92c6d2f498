//go:build unix

package processes

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

const (
	workers = 8
	blocks  = 48 // so few that processes meet
	// minMade is the least number of IDs for a meaningful test.
	minMade = 100_000
)

// Run creates the store at a URL, and runs eight processes on its 48 blocks, which generate IDs as
// fast as they can. For some seconds per round, it kills, stops and restarts them, and makes the
// store unreachable. It collects every ID and checks that no two are equal, and that no second of a
// node is used by two processes. After each round all processes must generate IDs again. Run stores
// 16 KB for each second of a node, not each ID.
//
// The test's program must import the package that opens the URL. outage makes the store
// unreachable, calls during, and makes it reachable again; it is called twice per round. There are
// as many rounds as it takes to generate TRACEFLAKETEST_SOAK_IDS IDs, or one.
func Run(t *testing.T, url string, outage func(during func()) error) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if os.Getenv(workerURL) != "" { // or workers would start workers
		fmt.Fprintln(os.Stderr, "TestMain must begin with processes.Worker()")
		os.Exit(1)
	}
	var ids int64
	if text := os.Getenv("TRACEFLAKETEST_SOAK_IDS"); text != "" {
		var err error
		if ids, err = strconv.ParseInt(text, 10, 64); err != nil || ids < 1 {
			t.Fatalf("TRACEFLAKETEST_SOAK_IDS is %q, want a number of IDs", text)
		}
	}
	Store(url).Create(t, lease.Description{Nodes: blocks * 8})
	codec, err := secretOf(Store(url).Client(t))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{tb: t, url: url, codec: codec, pages: map[second]*page{}}
	defer func() {
		for _, l := range f.all {
			l.end(syscall.SIGKILL)
		}
	}()
	began := time.Now()
	for i := range workers {
		f.start(i)
	}
	f.wait("generated no IDs at the start")
	rounds := 1
	for f.round(rounds, outage); f.count() < ids; f.round(rounds, outage) {
		rounds++
	}
	for _, l := range f.lives {
		if l.end(syscall.SIGTERM); l.err != nil {
			t.Errorf("%s: %v: %s", l.name, l.err, l.said.Load())
		}
	}
	made := f.count()
	t.Logf("%d rounds in %s: %d lives, %d IDs", rounds, time.Since(began).Round(time.Second),
		len(f.all), made)
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
		f.lives[i].signal(syscall.SIGSTOP)
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
		f.lives[i].end(
			[]syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[rand.IntN(3)])
		f.start(i)
	}
	for _, i := range stopped {
		f.lives[i].signal(syscall.SIGCONT)
	}
	if err := <-ended; err != nil {
		f.tb.Fatal(err)
	}
	f.wait("generated no IDs after a short outage of the store")

	// The store is unreachable for longer than a lease lasts.
	if err := outage(func() { time.Sleep(workerTTL + workerTTL/4) }); err != nil {
		f.tb.Fatal(err)
	}
	f.wait("generated no IDs after an outage longer than a lease")
}

// fleet is the workers of one store.
type fleet struct {
	tb    testing.TB
	url   string
	codec *randflake.Codec
	lives [workers]*life // the present ones
	all   []*life

	mu    sync.Mutex
	pages map[second]*page
}

// life is one process of a worker, with the IDs that it generated.
type life struct {
	name  string
	fleet *fleet
	cmd   *exec.Cmd
	said  words
	ended chan struct{} // closed when it has ended and all its output was read
	err   error         // with which it ended

	rest  []byte // a part of an ID
	count atomic.Int64
}

// words holds the last line of a process's output.
type words struct{ atomic.Value }

func (w *words) Write(b []byte) (int, error) {
	w.Store(strings.TrimSpace(string(b)))
	return len(b), nil
}

type second struct {
	node uint32
	unix int64
}

// page has a bit for each ID of one node and second, which one life has generated.
type page struct {
	by   *life
	used [(1 << 17) / 64]uint64
}

// mark records new IDs, and reports one whose second of a node another life has used, or that was
// generated before.
func (f *fleet) mark(l *life, ids []randflake.Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		at := second{id.Node, id.Time.Unix()}
		p := f.pages[at]
		if p == nil {
			p = &page{by: l}
			f.pages[at] = p
		}
		word, bit := &p.used[id.Sequence/64], uint64(1)<<(id.Sequence%64)
		if repeated := *word&bit != 0; (repeated || p.by != l) && !f.tb.Failed() {
			f.tb.Errorf("%s generated %+v, whose second %s has used; the same ID: %t", l.name, id,
				p.by.name, repeated)
		}
		*word |= bit
	}
}

func (f *fleet) start(i int) {
	f.tb.Helper()
	self, err := os.Executable()
	if err != nil {
		f.tb.Fatal(err)
	}
	l := &life{name: fmt.Sprintf("process %d", len(f.all)+1), fleet: f, cmd: exec.Command(self),
		ended: make(chan struct{})}
	l.cmd.Env = append(os.Environ(), workerURL+"="+f.url)
	l.cmd.Stdout, l.cmd.Stderr = l, &l.said
	_, err = l.cmd.StdinPipe() // closed by Wait, or when this process ends
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		f.tb.Fatal(err)
	}
	f.lives[i], f.all = l, append(f.all, l)
	go func() {
		defer close(l.ended)
		l.err = l.cmd.Wait()
	}()
}

// signal sends a signal to a process, which may have ended by itself.
func (l *life) signal(s os.Signal) { _ = l.cmd.Process.Signal(s) }

func (l *life) end(s os.Signal) {
	l.signal(s)
	<-l.ended
}

// count returns the number of IDs generated so far.
func (f *fleet) count() (made int64) {
	for _, l := range f.all {
		made += l.count.Load()
	}
	return made
}

// wait waits until every process has generated another ID.
func (f *fleet) wait(what string) {
	f.tb.Helper()
	var before [workers]int64
	for i, l := range f.lives {
		before[i] = l.count.Load()
	}
	// on a busy machine, over a bad network, it takes many tries
	deadline := time.After(90 * time.Second)
	for i, l := range f.lives {
		for l.count.Load() <= before[i] {
			select {
			case <-l.ended:
				f.tb.Fatalf("a process ended: %v", l.said.Load())
			case <-deadline:
				f.tb.Fatalf("processes %s; one of them says: %v", what, l.said.Load())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// Write records the IDs in a process's output.
func (l *life) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	whole := len(l.rest) &^ 7
	ids := make([]randflake.Parts, 0, whole/8)
	for id := range slices.Chunk(l.rest[:whole], 8) {
		ids = append(ids, l.fleet.codec.Decode(randflake.ID(binary.BigEndian.Uint64(id))))
	}
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	l.fleet.mark(l, ids)
	l.count.Add(int64(len(ids)))
	return len(b), nil
}
