//go:build unix

package leasetest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Processes runs real processes on a store.
type Processes struct {
	// URL names the store, for [driver.Open]. The test's program must import
	// the package that opens it.
	URL string
	// Outage makes the store unreachable, calls during, and makes it reachable again. It is called
	// twice per round.
	Outage func(during func()) error
	// IDs is the number of IDs to make, in as many rounds as necessary. If it is 0, there is one
	// round.
	IDs int64
	// Blocks is how many blocks the store has; the default is 48, so that processes meet.
	Blocks uint32
}

const (
	workerLife = "TRACEFLAKE_LEASETEST_LIFE" // set in a worker: the file for its grants
	workerURL  = "TRACEFLAKE_LEASETEST_URL"
	workerTTL  = 2 * time.Second
	workers    = 8
	// minMade is the least number of IDs for a meaningful test.
	minMade = 100_000
)

// Worker returns at once unless this process is a worker of [Processes.Run]. TestMain must begin
// with it.
func Worker() {
	life := os.Getenv(workerLife)
	if life == "" {
		return
	}
	if err := work(life, os.Getenv(workerURL)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work is one life of a worker: it makes IDs as fast as its output is read, until it is told to
// end or is killed.
func work(life, url string) error {
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		stop()
	}()
	store, err := driver.Open(url)
	if err != nil {
		return err
	}
	log, err := os.Create(life + ".grants")
	if err != nil {
		return err
	}
	codec, err := codecOf(end, store)
	if err != nil {
		return err
	}
	report := func(err error) { fmt.Fprintln(os.Stderr, err) }
	k, err := lease.Start(end, witness{store, log, new(sync.Map)}, codec, lease.WithTTL(workerTTL), lease.WithErrorHandler(report))
	if err != nil {
		return err
	}
	ids := make([]randflake.ID, 1024)
	buf := make([]byte, 0, 8*len(ids))
	for end.Err() == nil {
		n, _, err := k.Fill(ids)
		if n == 0 && err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		buf = buf[:0]
		for _, id := range ids[:n] {
			buf = binary.BigEndian.AppendUint64(buf, uint64(id))
		}
		if _, err := os.Stdout.Write(buf); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), workerTTL)
	defer cancel()
	_ = k.Close(ctx) // if the store is unreachable, only the remaining seconds are lost
	_ = store.Close(ctx)
	return nil
}

// codecOf returns the codec of the store's own secret if it has one, otherwise that of a fleet.
func codecOf(ctx context.Context, s driver.Store) (*randflake.Codec, error) {
	if own, ok := s.(driver.Embedded); ok {
		return own.Codec(ctx)
	}
	return randflake.NewCodec([]byte("one fleet's code"))
}

// witness records what the store grants, before the Keeper may use it, and what the Keeper
// returns.
type witness struct {
	lease.Store
	log    *os.File
	nonces *sync.Map // of all writes by this life
}

// entry is a rectangle in Unix seconds.
type entry struct {
	Node, Nodes uint32
	Start, End  int64
	Released    bool
}

func (w witness) note(g lease.Grant, end time.Time, released bool) error {
	line, err := json.Marshal(entry{g.Node, g.Nodes, g.Start.Unix(), end.Unix(), released})
	if err != nil {
		return err
	}
	_, err = w.log.Write(append(line, '\n'))
	return err
}

func (w witness) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	return w.granted(w.Store.Acquire(ctx, r))
}

func (w witness) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	return w.granted(w.Store.Renew(ctx, g, r))
}

func (w witness) granted(g lease.Grant, err error) (lease.Grant, error) {
	if err == nil {
		err = w.note(g, g.End, false)
	}
	return g, err
}

// Get records what an unanswered write changed, if this life made the write.
func (w witness) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	stored, err := w.Store.Get(ctx, node)
	if _, own := w.nonces.Load(stored.Nonce); own {
		return w.granted(stored, err)
	}
	return stored, err
}

func (w witness) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	if err := w.note(g, unused, true); err != nil {
		return err
	}
	return w.Store.Release(ctx, g, next, unused)
}

// Run runs eight processes on one store, each making IDs as fast as it can. It kills, stops and
// restarts them, and makes the store unreachable, for some seconds per round. It collects every ID
// of every life and checks that no two are the same and that each lies in a rectangle that was
// granted to its life. After each round all processes make IDs again. It stores 16 KB for each
// second of a node, not each ID.
func (p Processes) Run(tb testing.TB) {
	codec, err := p.create(tb)
	if err != nil {
		tb.Fatalf("create the store: %v", err)
	}
	f := &fleet{tb: tb, url: p.URL, dir: tb.TempDir(), codec: codec, pages: map[second]*page{}}
	defer f.kill()
	began := time.Now()
	for i := range workers {
		f.start(i)
	}
	f.wait("made no IDs at the start")
	for rounds := 1; ; rounds++ {
		p.round(f, rounds)
		if f.count() >= p.IDs {
			tb.Logf("%d rounds in %s", rounds, time.Since(began).Round(time.Second))
			break
		}
	}
	for i := range f.procs {
		f.signal(i, syscall.SIGTERM)
		if err := f.procs[i].Wait(); err != nil {
			tb.Errorf("worker %d: %v", i, err)
		}
	}
	f.readers.Wait()
	f.judge()
}

// create creates the store, and returns its codec.
func (p Processes) create(tb testing.TB) (*randflake.Codec, error) {
	storage := Storage{Open: func() (driver.Store, error) { return driver.Open(p.URL) }}
	d := lease.Description{Nodes: cmp.Or(p.Blocks, 48) * driver.DefaultBlockSize}
	store := storage.Client(tb)
	if _, own := store.(driver.Embedded); !own {
		d.ID = lease.NewNonce()
		codec, err := codecOf(tb.Context(), store)
		if err != nil {
			return nil, err
		}
		d.Secrets = []string{lease.Fingerprint(codec, d.ID)}
	}
	storage.Create(tb, d)
	return codecOf(tb.Context(), store)
}

// round disturbs the processes once in every way.
func (p Processes) round(f *fleet, n int) {
	// Two processes are stopped past the end of their leases; the others are killed, or ended in
	// an orderly way, and restarted at once. In the meantime the store is briefly unreachable.
	stopped := []int{n % workers, (n + 1) % workers}
	for _, i := range stopped {
		f.signal(i, syscall.SIGSTOP)
	}
	outage := make(chan error)
	go func() {
		time.Sleep(workerTTL / 4)
		outage <- p.Outage(func() { time.Sleep(workerTTL / 4) })
	}()
	for begin := time.Now(); time.Since(begin) < workerTTL+time.Second; {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		i := rand.IntN(workers)
		if slices.Contains(stopped, i) {
			continue
		}
		f.signal(i, []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[rand.IntN(3)])
		_ = f.procs[i].Wait()
		f.start(i)
	}
	for _, i := range stopped {
		f.signal(i, syscall.SIGCONT)
	}
	if err := <-outage; err != nil {
		f.tb.Fatal(err)
	}
	f.wait("made no IDs after a short outage of the store")

	// The store is unreachable for longer than a lease lasts.
	if err := p.Outage(func() { time.Sleep(workerTTL + workerTTL/4) }); err != nil {
		f.tb.Fatal(err)
	}
	f.wait("made no IDs after an outage longer than a lease")
}

// count returns the number of IDs made so far.
func (f *fleet) count() (made int64) {
	for _, l := range f.all {
		made += l.count.Load()
	}
	return made
}

// fleet is the workers of one store.
type fleet struct {
	tb    testing.TB
	url   string
	dir   string
	codec *randflake.Codec
	procs [workers]*exec.Cmd
	made  [workers]*life // by the present life of each worker
	all   []*life

	readers sync.WaitGroup
	mu      sync.Mutex
	pages   map[second]*page
}

// life holds what one life of a worker made.
type life struct {
	name  string
	count atomic.Int64
	seen  map[second]bool // the nodes and seconds of its IDs
}

type second struct {
	node uint32
	unix int64
}

// page has a bit for each ID of one node and second.
type page [(randflake.MaxSequence + 1) / 64]uint64

func (f *fleet) start(i int) {
	f.tb.Helper()
	l := &life{name: filepath.Join(f.dir, fmt.Sprintf("life%03d", len(f.all)+1)), seen: map[second]bool{}}
	f.all = append(f.all, l)
	self, err := os.Executable()
	if err != nil {
		f.tb.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerLife+"="+l.name, workerURL+"="+f.url)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	_, err = cmd.StdinPipe() // closed by Wait, or when this process ends
	if err == nil {
		err = cmd.Start()
	}
	_ = w.Close()
	if err != nil {
		f.tb.Fatal(err)
	}
	f.procs[i], f.made[i] = cmd, l
	f.readers.Go(func() {
		defer func() { _ = r.Close() }()
		f.collect(l, r)
	})
}

func (f *fleet) kill() {
	for _, p := range f.procs {
		if p != nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	}
	f.readers.Wait()
}

func (f *fleet) signal(i int, s os.Signal) {
	f.tb.Helper()
	if err := f.procs[i].Process.Signal(s); err != nil {
		f.tb.Fatalf("worker %d: %v", i, err)
	}
}

// wait waits until every process has made another ID.
func (f *fleet) wait(what string) {
	f.tb.Helper()
	var before [workers]int64
	for i, l := range f.made {
		before[i] = l.count.Load()
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		stuck := 0
		for i, l := range f.made {
			if l.count.Load() <= before[i] {
				stuck++
			}
		}
		if stuck == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.tb.Fatalf("%d processes %s", stuck, what)
		}
	}
}

// collect reads the IDs of a life until its last one.
func (f *fleet) collect(l *life, r io.Reader) {
	buf := make([]byte, 64<<10)
	parts := make([]randflake.Parts, 0, len(buf)/8)
	for {
		n, err := io.ReadFull(r, buf)
		parts = parts[:0]
		for b := buf[:n]; len(b) >= 8; b = b[8:] {
			parts = append(parts, f.codec.Decode(randflake.ID(binary.BigEndian.Uint64(b))))
		}
		f.mark(l, parts)
		l.count.Add(int64(len(parts)))
		if err != nil {
			return
		}
	}
}

// mark records new IDs and reports those made before.
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
			f.tb.Errorf("%s made an ID that was made before: %+v", l.name, id)
			return
		}
		p[word] |= bit
	}
}

// judge compares the IDs with the grants.
func (f *fleet) judge() {
	tb := f.tb
	tb.Helper()
	var all []entry
	for _, l := range f.all {
		grants, err := readGrants(l.name + ".grants")
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, slices.Collect(maps.Values(grants))...)
		for at := range l.seen {
			if !covered(grants, at) {
				tb.Errorf("%s made IDs of %+v, which was not granted to it", l.name, at)
			}
		}
	}
	// Grants must never overlap, whether they were used or not.
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Node == b.Node && b.Start < a.End {
			tb.Errorf("grants overlap: %+v and %+v", a, b)
		}
	}
	made := f.count()
	tb.Logf("%d lives, %d grants, %d IDs", len(f.all), len(all), made)
	if made < minMade {
		tb.Errorf("only %d IDs were made", made)
	}
}

// place identifies a grant: a renewal changes only its end.
type place struct {
	node  uint32
	start int64
}

// readGrants returns the rectangles of a life. A line truncated by a kill was not used.
func readGrants(name string) (map[place]entry, error) {
	b, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) { // killed before it wrote any
		return nil, err
	}
	grants := map[place]entry{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		at := place{e.Node, e.Start}
		known, ok := grants[at]
		switch {
		case !ok:
			known = e
		case e.Released:
			known.End = min(known.End, max(known.Start, e.End))
		default:
			known.End = max(known.End, e.End)
		}
		grants[at] = known
	}
	return grants, nil
}

func covered(grants map[place]entry, at second) bool {
	for _, g := range grants {
		if at.node-g.Node < g.Nodes && g.Start <= at.unix && at.unix < g.End {
			return true
		}
	}
	return false
}
