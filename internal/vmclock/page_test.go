//go:build linux && (amd64 || arm64)

package vmclock

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// device is a file that stands in for the device. It is written as a hypervisor does it, through a
// mapping, so that an update takes nanoseconds.
type device struct {
	*page
	t    testing.TB
	path string
}

func newDevice(t testing.TB) *device {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vmclock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(b) })
	p := (*page)(unsafe.Pointer(unsafe.SliceData(b)))
	p.magic, p.size, p.version = pageMagic, 4096, 1
	p.flags.Store(flagGeneration)
	return &device{page: p, t: t, path: path}
}

func (d *device) begin() { d.seq.Store(d.seq.Load() | 1) }
func (d *device) end()   { d.seq.Add(1) }

func (d *device) update(marker, generation uint64) {
	d.begin()
	d.marker.Store(marker)
	d.generation.Store(generation)
	d.end()
}

func (d *device) cut(size int64) {
	if err := os.Truncate(d.path, size); err != nil {
		d.t.Fatal(err)
	}
}

func (d *device) open() *Machine {
	d.t.Helper()
	c, err := Open(d.path)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// A page's own size field and its flags decide what is read from it.
func TestSignals(t *testing.T) {
	for name, tt := range map[string]struct {
		size  uint32
		flags uint64
		want  Signal
	}{
		"a whole page":               {4096, flagGeneration, GenerationCounter},
		"all other flags":            {4096, ^uint64(flagGeneration), DisruptionMarker},
		"as long as required":        {sizeGeneration, flagGeneration, GenerationCounter},
		"it ends before the counter": {sizeGeneration - 1, flagGeneration, DisruptionMarker},
		"it ends with its flags":     {sizeFlags, flagGeneration, DisruptionMarker},
	} {
		d := newDevice(t)
		d.cut(int64(unsafe.Sizeof(page{})))
		d.size = tt.size
		d.flags.Store(tt.flags)
		d.update(5, 7)
		t.Setenv(PathVariable, d.path)
		m := open()
		if signal, err := m.Status(); signal != tt.want || err != nil {
			t.Errorf("%s: %v, %v", name, signal, err)
		}
		// a migration, a restore
		for _, u := range []struct{ marker, generation uint64 }{{5, 7}, {6, 7}, {7, 8}} {
			before := m.Version().Load()
			d.update(u.marker, u.generation)
			want := u.generation
			if tt.want == DisruptionMarker {
				want = u.marker
			}
			if got := m.Generation(); got != want || m.Version().Load() != before+2 {
				t.Errorf("%s, %+v: generation %d, want %d; version %d, %d before", name, u, got,
					want, m.Version().Load(), before)
			}
			// Every field that changes with a restore is in the raw words, at its place.
			if p := m.Page(); uint32(p[1]>>32) != m.Version().Load() || p[2] != u.marker ||
				p[13] != u.generation {
				t.Errorf("%s, %+v: the page is %x", name, u, p)
			}
		}
	}
}

func TestUnusablePages(t *testing.T) {
	for want, change := range map[string]func(d *device){
		"too short: 111 bytes, need at least 112":      func(d *device) { d.cut(111) },
		"its size field is 31 bytes, need at least 32": func(d *device) { d.size = 31 },
		"begins with 0x4b4c4357":                       func(d *device) { d.magic++ },
		"version 0":                                    func(d *device) { d.version = 0 },
		"version 257":                                  func(d *device) { d.version = 257 },
	} {
		d := newDevice(t)
		change(d)
		if c, err := Open(d.path); c != nil || err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), d.path) {
			t.Errorf("%v, %v; want an error with %q", c, err, want)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}

// An update that does not end: no call hangs, the generation changes once, and after the update it
// is the page's again.
func TestStuckUpdate(t *testing.T) {
	d := newDevice(t)
	d.update(1, 1)
	c := d.open()
	d.begin()
	stuck := c.Generation()
	if stuck == 1 || stuck == 2 {
		t.Errorf("generation %d during an update", stuck)
	}
	if seen := c.seen.Load(); c.Generation() != stuck || c.seen.Load() != seen {
		t.Errorf("%d, then %d: the page is read again", stuck, c.Generation())
	}
	if opened := d.open().Generation(); opened == 1 {
		t.Error("a clock opened during an update trusts the page's number")
	}
	d.generation.Store(2)
	d.end()
	if got := c.Generation(); got != 2 {
		t.Errorf("generation %d after the update, want 2", got)
	}
}

// Torn readings are discarded: marker and counter always change together, and the flag decides
// which of them is read, also if it changes because the machine migrated to another host.
func TestUpdatesAndManyReaders(t *testing.T) {
	d := newDevice(t)
	d.update(0, 0)
	c := d.open()
	var floor, written atomic.Uint64 // the oldest and the newest generation that a reader may see
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for !stop.Load() {
				least := floor.Load()
				got := c.Generation()
				most := written.Load()
				if got>>32 == 0 && (got < least || got > most) { // otherwise an update took long
					t.Errorf("generation %d, want %d to %d", got, least, most)
					return
				}
			}
		})
	}
	const wrong = 1 << 30
	r := rand.New(rand.NewPCG(1, 1))
	for n := uint64(1); n <= 1_000_000; n++ {
		written.Store(n)
		d.begin()
		flags := uint64(r.IntN(2)) * flagGeneration
		d.flags.Store(flags)
		if flags == 0 { // the field that is not read
			d.generation.Store(n + wrong)
			d.marker.Store(n)
		} else {
			d.marker.Store(n + wrong)
			d.generation.Store(n)
		}
		d.end()
		floor.Store(n)
	}
	stop.Store(true)
	wg.Wait()
}
