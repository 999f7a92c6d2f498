//go:build unix

package leasetest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
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

// entry is a rectangle in Unix seconds, and the write that was acknowledged with it, if one was:
// the version of the block, and when the call began and was answered, in Unix nanoseconds.
type entry struct {
	Node, Nodes     uint32
	Start, End      int64
	Released        bool
	Nonce           string
	Version         uint64
	Began, Answered int64
}

func (w witness) note(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.log.Write(append(line, '\n'))
	return err
}

func (w witness) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	began := time.Now()
	g, err := w.Store.Acquire(ctx, r)
	return w.granted(began, g, err)
}

func (w witness) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	began := time.Now()
	g, err := w.Store.Renew(ctx, g, r)
	return w.granted(began, g, err)
}

func (w witness) granted(began time.Time, g lease.Grant, err error) (lease.Grant, error) {
	if err == nil {
		err = w.note(entry{
			Node: g.Node, Nodes: g.Nodes, Start: g.Start.Unix(), End: g.End.Unix(),
			Nonce: g.Nonce, Version: g.Version, Began: began.UnixNano(), Answered: time.Now().UnixNano(),
		})
	}
	return g, err
}

// Get records what an unanswered write changed, if this life made the write.
func (w witness) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	stored, err := w.Store.Get(ctx, node)
	if _, own := w.nonces.Load(stored.Nonce); own && err == nil {
		err = w.note(entry{Node: stored.Node, Nodes: stored.Nodes, Start: stored.Start.Unix(), End: stored.End.Unix()})
	}
	return stored, err
}

func (w witness) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	if err := w.note(entry{Node: g.Node, Nodes: g.Nodes, Start: g.Start.Unix(), End: unused.Unix(), Released: true}); err != nil {
		return err
	}
	return w.Store.Release(ctx, g, next, unused)
}

// Run creates the store, and runs eight processes on it, each making IDs as fast as it can. It kills,
// stops and restarts them, and makes the store unreachable, for some seconds per round. It collects
// every ID of every life and checks that no two are the same and that each lies in a rectangle that
// was granted to its life; and that every write that the store acknowledged is still there when the
// block is written next. After each round all processes make IDs again. It stores 16 KB for each
// second of a node, not each ID.
func (p Processes) Run(tb testing.TB) {
	if os.Getenv(workerLife) != "" { // or workers would start workers
		fmt.Fprintln(os.Stderr, "TestMain must begin with leasetest.Worker()")
		os.Exit(1)
	}
	store, codec := p.create(tb)
	f := &fleet{tb: tb, url: p.URL, store: store, dir: tb.TempDir(), codec: codec, pages: map[second]*page{}}
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
			tb.Errorf("worker %d: %v: %s", i, err, f.made[i].error())
		}
	}
	f.readers.Wait()
	f.judge(f.stored())
}

// create creates the store, and returns a client and the codec.
func (p Processes) create(tb testing.TB) (driver.Store, *randflake.Codec) {
	tb.Helper()
	storage := Storage{Open: func() (driver.Store, error) { return driver.Open(p.URL) }}
	d := lease.Description{ID: lease.NewNonce(), Nodes: cmp.Or(p.Blocks, 48) * driver.DefaultBlockSize}
	store := storage.Client(tb)
	if _, own := store.(driver.Embedded); !own {
		codec, err := codecOf(tb.Context(), store)
		if err != nil {
			tb.Fatal(err)
		}
		d.Secrets = []string{lease.Fingerprint(codec, d.ID)}
	}
	storage.Create(tb, d)
	codec, err := codecOf(tb.Context(), store)
	if err == nil {
		_, err = store.Describe(tb.Context()) // so that this client knows the store
	}
	if err != nil {
		tb.Fatalf("the store that was created: %v", err)
	}
	return store, codec
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
		outage <- p.outage(f, workerTTL/4)
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
	if err := p.outage(f, workerTTL+workerTTL/4); err != nil {
		f.tb.Fatal(err)
	}
	f.wait("made no IDs after an outage longer than a lease")
}

func (p Processes) outage(f *fleet, d time.Duration) error {
	return p.Outage(func() {
		began := time.Now().UnixNano()
		time.Sleep(d)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outages = append(f.outages, [2]int64{began, time.Now().UnixNano()})
	})
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
	store driver.Store // a client of the test's own
	dir   string
	codec *randflake.Codec
	procs [workers]*exec.Cmd
	made  [workers]*life // by the present life of each worker
	all   []*life

	readers sync.WaitGroup
	mu      sync.Mutex
	pages   map[second]*page
	repeats int
	outages [][2]int64 // when the store was unreachable, in Unix nanoseconds
}

// life holds what one life of a worker made.
type life struct {
	name  string
	count atomic.Int64
	seen  map[second]bool // the nodes and seconds of its IDs
	ended chan struct{}   // closed with its output
}

type second struct {
	node uint32
	unix int64
}

// page has a bit for each ID of one node and second.
type page [(randflake.MaxSequence + 1) / 64]uint64

func (f *fleet) start(i int) {
	f.tb.Helper()
	l := &life{name: filepath.Join(f.dir, fmt.Sprintf("life%03d", len(f.all)+1)), seen: map[second]bool{}, ended: make(chan struct{})}
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
	cmd.Stdout = w
	said, err := os.Create(l.name + ".errors")
	if err == nil {
		defer func() { _ = said.Close() }()
		cmd.Stderr = said
		_, err = cmd.StdinPipe() // closed by Wait, or when this process ends
	}
	if err == nil {
		err = cmd.Start()
	}
	_ = w.Close()
	if err != nil {
		f.tb.Fatal(err)
	}
	f.procs[i], f.made[i] = cmd, l
	f.readers.Go(func() {
		defer close(l.ended)
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
	deadline := time.Now().Add(30 * time.Second)
	for try := 0; ; try++ {
		var stuck []*life
		for i, l := range f.made {
			if l.count.Load() <= before[i] {
				stuck = append(stuck, l)
			}
		}
		if len(stuck) == 0 {
			return
		}
		for _, l := range stuck {
			select {
			case <-l.ended:
				f.tb.Fatalf("a process ended: %s", l.error())
			default:
			}
		}
		if try%50 == 49 {
			f.forgotten(what)
		}
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(deadline) {
			f.tb.Fatalf("%d processes %s; the first one says: %s", len(stuck), what, stuck[0].error())
		}
	}
}

// forgotten fails the test if the store is gone.
func (f *fleet) forgotten(when string) {
	f.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := f.store.Describe(ctx); errors.Is(err, lease.ErrNoStore) || errors.Is(err, lease.ErrReplaced) {
		f.tb.Fatalf("the store that was created is gone, and processes %s: does the server keep it in memory only, and forget it when it restarts? It says: %v", when, err)
	}
}

// error returns what a life said last.
func (l *life) error() string {
	text, err := os.ReadFile(l.name + ".errors")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return last
	}
	return "(nothing)"
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
			if f.repeats++; f.repeats <= 3 { // batches
				f.tb.Errorf("%s made an ID that was made before: %+v", l.name, id)
			}
			return
		}
		p[word] |= bit
	}
}

// stored returns the blocks as the last write left them. The client may have connections that an
// outage has cut.
func (f *fleet) stored() (blocks []entry) {
	f.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	all, err := f.store.List(ctx)
	for ; err != nil && ctx.Err() == nil; all, err = f.store.List(ctx) {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		f.tb.Fatalf("after all processes ended: %v", err)
	}
	now := time.Now().UnixNano()
	for _, g := range all {
		blocks = append(blocks, entry{Node: g.Node, Nonce: g.Nonce, Version: g.Version, Began: now, Answered: now})
	}
	return blocks
}

// judge compares the IDs with the grants, and the writes with what is stored.
func (f *fleet) judge(writes []entry) {
	tb := f.tb
	tb.Helper()
	var all []entry
	for _, l := range f.all {
		grants, acknowledged, err := readGrants(l.name + ".grants")
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, slices.Collect(maps.Values(grants))...)
		writes = append(writes, acknowledged...)
		for at := range l.seen {
			if !covered(grants, at) {
				tb.Errorf("%s made IDs of %+v, which was not granted to it", l.name, at)
			}
		}
	}
	f.judgeWrites(writes)
	// Grants must never overlap, whether they were used or not.
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Node == b.Node && b.Start < a.End {
			tb.Errorf("grants overlap: %s and %s", a, b)
		}
	}
	made := f.count()
	tb.Logf("%d lives, %d grants, %d IDs", len(f.all), len(all), made)
	if made < minMade {
		tb.Errorf("only %d IDs were made", made)
	}
}

func (e entry) String() string {
	return fmt.Sprintf("nodes %d+%d for seconds %d to %d", e.Node, e.Nodes, e.Start, e.End)
}

// judgeWrites checks that no write was acknowledged during an outage, and that each block's version
// includes every write that was acknowledged before.
func (f *fleet) judgeWrites(writes []entry) {
	tb := f.tb
	tb.Helper()
	slices.SortFunc(writes, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Answered, b.Answered))
	})
	for _, e := range writes {
		if slices.ContainsFunc(f.outages, func(o [2]int64) bool { return o[0] < e.Began && e.Answered < o[1] }) {
			tb.Errorf("the store was unreachable, and version %d of node %d was acknowledged although it had failed: an error of a write is swallowed", e.Version, e.Node)
			return
		}
	}
	last := map[uint32]entry{} // of each node, the write with the highest version
	for _, e := range writes {
		before, ok := last[e.Node]
		switch {
		case !ok || e.Version > before.Version:
			last[e.Node] = e
		case e.Nonce == before.Nonce || e.Version < before.Version && e.Began < before.Answered: // answered in another order
		default:
			mistake := "writes are not conditional, or one was acknowledged although it had failed"
			if slices.ContainsFunc(f.outages, func(o [2]int64) bool { return before.Answered < o[1] && o[0] < e.Answered }) {
				mistake = "in an outage it forgot a write, which was not on a disk yet, or was acknowledged although it had failed"
			}
			tb.Errorf("the store acknowledged version %d of node %d, and a later write is version %d: %s",
				before.Version, e.Node, e.Version, mistake)
			return
		}
	}
}

// place identifies a grant: a renewal changes only its end.
type place struct {
	node  uint32
	start int64
}

// readGrants returns the rectangles of a life, and the writes that were acknowledged to it. A line
// truncated by a kill was not used.
func readGrants(name string) (grants map[place]entry, writes []entry, err error) {
	b, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) { // killed before it wrote any
		return nil, nil, err
	}
	grants = map[place]entry{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.Version > 0 {
			writes = append(writes, e)
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
	return grants, writes, nil
}

func covered(grants map[place]entry, at second) bool {
	for _, g := range grants {
		if at.node-g.Node < g.Nodes && g.Start <= at.unix && at.unix < g.End {
			return true
		}
	}
	return false
}
