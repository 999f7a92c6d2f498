//go:build unix

package leasetest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// Processes runs real processes on a store.
type Processes struct {
	// URL names the store, for [stores.Open]. The test's program must import
	// the package that opens it.
	URL string
	// Outage makes the store unreachable, calls during, and makes it reachable again. It is called
	// twice per round.
	Outage func(during func()) error
	// IDs is the number of IDs to generate, in as many rounds as necessary; 0 means one round.
	IDs int64
}

const (
	workers = 8
	blocks  = 48 // so few that processes meet
	// minMade is the least number of IDs for a meaningful test.
	minMade = 100_000
)

// Run creates the store, and runs eight processes on its 48 blocks, which generate IDs as fast as
// they can. For some seconds per round, it kills, stops and restarts them, and makes the store
// unreachable. It collects every ID and checks that no two are equal, that each is in a grant of
// its process, and that the store forgot no write. After each round all processes must generate IDs
// again. Run stores 16 KB for each second of a node, not each ID.
func (p Processes) Run(tb testing.TB) {
	if os.Getenv(workerLog) != "" { // or workers would start workers
		fmt.Fprintln(os.Stderr, "TestMain must begin with leasetest.Worker()")
		os.Exit(1)
	}
	store, err := stores.Open(p.URL)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	defer func() { _ = store.Close() }()
	d, err := stores.NewDescription(
		lease.Description{Created: time.Now(), Nodes: blocks * 8, BlockSize: 8})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := again(func() (none struct{}, err error) {
		return none, store.Create(tb.Context(), d)
	}); err != nil {
		tb.Fatalf("create: %v", err)
	}
	codec, err := codecOf(tb.Context(), store)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fleet{tb: tb, url: p.URL, dir: tb.TempDir(), codec: codec, pages: map[second]*page{}}
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
	for p.round(f, rounds); f.count() < p.IDs; p.round(f, rounds) {
		rounds++
	}
	tb.Logf("%d rounds in %s", rounds, time.Since(began).Round(time.Second))
	for _, l := range f.lives {
		if l.end(syscall.SIGTERM); l.err != nil {
			tb.Errorf("%s: %v: %s", l.name, l.err, l.said.Load())
		}
	}
	stored, err := again(func() ([]lease.Grant, error) { return store.List(tb.Context()) })
	if err != nil {
		tb.Fatalf("after all processes ended: %v", err)
	}
	f.judge(stored)
}

// round disturbs the processes once in every way.
func (p Processes) round(f *fleet, n int) {
	// Two processes are stopped past the end of their leases; the others are killed, or ended in
	// an orderly way, and restarted at once. In the meantime the store is briefly unreachable.
	stopped := []int{n % workers, (n + 1) % workers}
	for _, i := range stopped {
		f.lives[i].signal(syscall.SIGSTOP)
	}
	outage := make(chan error)
	go func() {
		time.Sleep(workerTTL / 4)
		outage <- p.Outage(func() { time.Sleep(workerTTL / 4) })
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
	if err := <-outage; err != nil {
		f.tb.Fatal(err)
	}
	f.wait("generated no IDs after a short outage of the store")

	// The store is unreachable for longer than a lease lasts.
	if err := p.Outage(func() { time.Sleep(workerTTL + workerTTL/4) }); err != nil {
		f.tb.Fatal(err)
	}
	f.wait("generated no IDs after an outage longer than a lease")
}

// fleet is the workers of one store.
type fleet struct {
	tb    testing.TB
	url   string
	dir   string
	codec *randflake.Codec
	lives [workers]*life // the present ones
	all   []*life

	mu      sync.Mutex
	pages   map[second]*page
	repeats int
}

// life is one process of a worker, with the IDs that it generated.
type life struct {
	name  string // of its log
	fleet *fleet
	cmd   *exec.Cmd
	said  words
	ended chan struct{} // closed when it has ended and all its output was read
	err   error         // with which it ended

	rest  []byte // a part of an ID
	count atomic.Int64
	seen  map[second]bool // the nodes and seconds of its IDs
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

// page has a bit for each ID of one node and second.
type page [(1 << 17) / 64]uint64

func (f *fleet) start(i int) {
	f.tb.Helper()
	self, err := os.Executable()
	if err != nil {
		f.tb.Fatal(err)
	}
	l := &life{
		name:  filepath.Join(f.dir, fmt.Sprintf("life%03d", len(f.all)+1)),
		fleet: f, cmd: exec.Command(self), ended: make(chan struct{}), seen: map[second]bool{},
	}
	l.cmd.Env = append(os.Environ(), workerLog+"="+l.name, workerURL+"="+f.url)
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

// mark records new IDs and reports those that were generated before.
func (f *fleet) mark(l *life, ids []randflake.Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		at := second{id.Node, id.Time.Unix()}
		p := f.pages[at]
		if p == nil {
			p = new(page)
			f.pages[at] = p
		}
		l.seen[at] = true
		word, bit := id.Sequence/64, uint64(1)<<(id.Sequence%64)
		if p[word]&bit != 0 {
			if f.repeats++; f.repeats <= 3 { // batches
				f.tb.Errorf("%s generated an ID that was generated before: %+v", l.name, id)
			}
			return
		}
		p[word] |= bit
	}
}

// judge compares the IDs with the grants, and the blocks that the workers saw with the stored ones.
func (f *fleet) judge(stored []lease.Grant) {
	tb := f.tb
	tb.Helper()
	var all, learned []lease.Grant
	for _, l := range f.all {
		log, err := os.ReadFile(l.name)
		if err != nil && !os.IsNotExist(err) { // killed before it wrote any
			tb.Fatal(err)
		}
		grants, seen := read(log)
		all, learned = append(all, grants...), append(learned, seen...)
		for at := range l.seen {
			if !slices.ContainsFunc(grants, func(g lease.Grant) bool {
				return at.node-g.Node < g.Nodes && g.Start.Unix() <= at.unix &&
					at.unix < g.End.Unix()
			}) {
				tb.Errorf("%s generated IDs of %+v, which was not granted to it", l.name, at)
				break
			}
		}
	}
	f.judgeWrites(stored, learned)
	// Grants must never overlap, whether they were used or not.
	slices.SortFunc(all, func(a, b lease.Grant) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Start.Compare(b.Start), a.End.Compare(b.End))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Node == b.Node && b.Start.Before(a.End) {
			tb.Errorf("grants overlap: %+v and %+v", a, b)
		}
	}
	made := f.count()
	tb.Logf("%d lives, %d grants, %d IDs", len(f.all), len(all), made)
	if made < minMade {
		tb.Errorf("only %d IDs were generated", made)
	}
}

// judgeWrites checks that each version of a block was written once, and that the store has the last
// version.
func (f *fleet) judgeWrites(stored, learned []lease.Grant) {
	f.tb.Helper()
	type version struct {
		node uint32
		n    uint64
	}
	last, nonces := map[uint32]uint64{}, map[version]string{}
	for _, g := range stored {
		last[g.Node], nonces[version{g.Node, g.Version}] = g.Version, g.Nonce
	}
	for _, g := range learned {
		v := version{g.Node, g.Version}
		if nonce, ok := nonces[v]; ok && nonce != g.Nonce || g.Version > last[g.Node] {
			f.tb.Errorf("version %d of node %d was lost: writes are not conditional, or the "+
				"store acknowledged one that had failed, or it forgot one in an outage, which "+
				"was not on a disk", v.n, v.node)
			return
		}
		nonces[v] = g.Nonce
	}
}

// read returns the content of a worker's log: the seconds that were granted, and the blocks that it
// saw. A line truncated by a kill was not used.
func read(log []byte) (grants, learned []lease.Grant) {
	for line := range bytes.Lines(log) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if !e.Released {
			learned = append(learned, e.Grant)
		}
		i := slices.IndexFunc(grants,
			func(g lease.Grant) bool { return g.Node == e.Node && g.Start.Equal(e.Start) })
		if i < 0 {
			grants = append(grants, e.Grant)
		} else if !e.Released || e.End.Before(grants[i].End) { // a renewal changes only the end
			grants[i].End = e.End
		}
	}
	return grants, learned
}
