//go:build unix

package boltstore_test

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

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/boltstore"
)

const (
	workerVar = "BOLTSTORE_TEST_WORKER" // set in a worker: its directory and life
	workerTTL = 2 * time.Second
)

func TestMain(m *testing.M) {
	if life := os.Getenv(workerVar); life != "" {
		if err := work(life); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is one life of a worker: it makes IDs as fast as its output is read,
// until it is told to end, or killed.
func work(life string) error {
	store, err := boltstore.Open(filepath.Join(filepath.Dir(life), "leases.db"), boltstore.WithTimeout(20*time.Second))
	if err != nil {
		return err
	}
	log, err := os.Create(life + ".grants")
	if err != nil {
		return err
	}
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	k, err := lease.Open(end, witness{store, log}, store.Codec(), lease.WithTTL(workerTTL),
		lease.WithErrorHandler(func(error) {}))
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
	return k.Close(context.Background())
}

// witness writes down what the store grants, before the Keeper may use it, and
// what the Keeper gives back.
type witness struct {
	*boltstore.Store
	log *os.File
}

// entry is a rectangle, in Unix seconds.
type entry struct {
	Holder      string
	Node, Nodes uint32
	Start, End  int64
	Released    bool
}

func (w witness) note(g lease.Grant, end time.Time, released bool) error {
	line, err := json.Marshal(entry{g.Holder, g.Node, g.Nodes, g.Start.Unix(), end.Unix(), released})
	if err != nil {
		return err
	}
	_, err = w.log.Write(append(line, '\n'))
	return err
}

func (w witness) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	g, err := w.Store.Acquire(ctx, r)
	if err == nil {
		err = w.note(g, g.End, false)
	}
	return g, err
}

func (w witness) Renew(ctx context.Context, g lease.Grant, end time.Time) (lease.Grant, error) {
	g, err := w.Store.Renew(ctx, g, end)
	if err == nil {
		err = w.note(g, g.End, false)
	}
	return g, err
}

func (w witness) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	stored, err := w.Store.Get(ctx, g)
	if err == nil && stored.Holder == g.Holder {
		err = w.note(stored, stored.End, false)
	}
	return stored, err
}

func (w witness) Release(ctx context.Context, g lease.Grant, unused time.Time) error {
	if err := w.note(g, unused, true); err != nil {
		return err
	}
	return w.Store.Release(ctx, g, unused)
}

// fleet is the workers of one file.
type fleet struct {
	t     *testing.T
	dir   string
	procs []*exec.Cmd
	made  []*life // by the present life of each

	codec   *randflake.Codec
	readers sync.WaitGroup
	mu      sync.Mutex
	all     []*life
	pages   map[second]*[(randflake.MaxSequence + 1) / 64]uint64
}

// life is what one life of a worker made.
type life struct {
	name  string
	count atomic.Int64
	seen  map[second]bool // where its IDs lie
}

type second struct {
	node uint32
	unix int64
}

func (f *fleet) start(i int) {
	f.t.Helper()
	l := &life{name: filepath.Join(f.dir, fmt.Sprintf("life%03d", len(f.all)+1)), seen: map[second]bool{}}
	f.all = append(f.all, l)
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVar+"="+l.name)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	err = cmd.Start()
	w.Close()
	if err != nil {
		f.t.Fatal(err)
	}
	f.procs[i], f.made[i] = cmd, l
	f.readers.Go(func() {
		defer r.Close()
		f.collect(l, r)
	})
}

// collect takes the IDs of a life, to the last one that it handed out.
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

// mark notes that IDs were made, and finds those made before.
func (f *fleet) mark(l *life, ids []randflake.Parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range ids {
		at := second{id.Node, id.Time.Unix()}
		page := f.pages[at]
		if page == nil {
			page = new([(randflake.MaxSequence + 1) / 64]uint64)
			f.pages[at] = page
		}
		l.seen[at] = true
		word, bit := id.Sequence/64, uint64(1)<<(id.Sequence%64)
		if page[word]&bit != 0 {
			f.t.Errorf("%s made an ID that was made before: %+v", l.name, id)
			return
		}
		page[word] |= bit
	}
}

func (f *fleet) signal(i int, s os.Signal) {
	f.t.Helper()
	if err := f.procs[i].Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// TestProcesses runs eight processes on one file and kills, stops and restarts
// them, and takes the store away, for some seconds. All IDs of all lives are
// collected: no two are the same, and each lies in a rectangle that was granted
// to its life.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const processes = 8
	dir := t.TempDir()
	store, err := boltstore.Open(filepath.Join(dir, "leases.db"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{
		t:     t,
		dir:   dir,
		codec: store.Codec(),
		procs: make([]*exec.Cmd, processes),
		made:  make([]*life, processes),
		pages: map[second]*[(randflake.MaxSequence + 1) / 64]uint64{},
	}
	for i := range processes {
		f.start(i)
	}
	t.Cleanup(func() {
		for _, p := range f.procs {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		f.readers.Wait()
	})

	// The last two are stopped past the end of their leases; the others are
	// killed, or ended in good order, and started again at once.
	stopped := []int{processes - 1, processes - 2}
	time.Sleep(500 * time.Millisecond)
	for _, i := range stopped {
		f.signal(i, syscall.SIGSTOP)
	}
	for begin := time.Now(); time.Since(begin) < workerTTL+time.Second; {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		i := rand.IntN(len(f.procs) - len(stopped))
		f.signal(i, []os.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[rand.IntN(3)])
		_ = f.procs[i].Wait()
		f.start(i)
	}
	for _, i := range stopped {
		f.signal(i, syscall.SIGCONT)
	}

	// No one gets at the file for longer than a lease lasts.
	db, err := bbolt.Open(filepath.Join(f.dir, "leases.db"), 0o600, &bbolt.Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(workerTTL + 500*time.Millisecond)
	before := make([]int64, processes)
	for i := range before {
		before[i] = f.made[i].count.Load()
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		stuck := 0
		for i := range before {
			if f.made[i].count.Load() <= before[i] {
				stuck++
			}
		}
		if stuck == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d processes made no IDs after the store was back", stuck)
		}
	}
	for i := range f.procs {
		f.signal(i, syscall.SIGTERM)
		if err := f.procs[i].Wait(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	f.readers.Wait()
	f.judge()
}

// judge compares what was made with what was granted.
func (f *fleet) judge() {
	t := f.t
	var all []entry
	var made int64
	for _, l := range f.all {
		grants := readGrants(t, l.name+".grants")
		all = append(all, slices.Collect(maps.Values(grants))...)
		made += l.count.Load()
		for at := range l.seen {
			if !covered(grants, at) {
				t.Errorf("%s made IDs of %+v, which was not granted to it", l.name, at)
			}
		}
	}
	// What was granted never overlaps, whether it was used or not.
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; a.Node == b.Node && b.Start < a.End {
			t.Errorf("grants overlap: %+v and %+v", a, b)
		}
	}
	t.Logf("%d lives, %d grants, %d IDs", len(f.all), len(all), made)
	if made < 100_000 {
		t.Errorf("only %d IDs were made", made)
	}
}

// readGrants returns the rectangles of a life by holder. A line that was cut
// off by a kill was not used.
func readGrants(t *testing.T, name string) map[string]entry {
	b, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	grants := map[string]entry{}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch known, ok := grants[e.Holder]; {
		case ok && e.Released:
			known.End = min(known.End, max(known.Start, e.End))
			grants[e.Holder] = known
		case ok && e.Node != known.Node:
			t.Fatalf("a holder has two blocks: %+v and %+v", known, e)
		case ok:
			known.End = max(known.End, e.End)
			grants[e.Holder] = known
		default:
			grants[e.Holder] = e
		}
	}
	return grants
}

func covered(grants map[string]entry, at second) bool {
	for _, g := range grants {
		if at.node-g.Node < g.Nodes && g.Start <= at.unix && at.unix < g.End {
			return true
		}
	}
	return false
}
