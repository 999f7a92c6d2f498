// Package vmclock detects that this machine was restored from a snapshot, which its
// hypervisor reports in Linux's vmclock page (include/uapi/linux/vmclock-abi.h,
// version 1). Without such a page, on systems other than Linux and on processors
// other than amd64 and arm64 it detects nothing: its status is [Off].
package vmclock

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// Device is the page's path, unless the environment variable [PathVariable]
// names another, which may be a plain file. A plain file must keep its length
// while a process uses it.
const (
	Device       = "/dev/vmclock0"
	PathVariable = "TRACEFLAKE_VMCLOCK"
)

// Source is what a Page reads.
type Source int

// The sources of a generation.
const (
	// Off reads nothing: the generation never changes.
	Off Source = iota
	// GenerationCounter changes when the machine is restored from a snapshot.
	GenerationCounter
	// DisruptionMarker also changes on a live migration. It is read if the
	// hypervisor has no generation counter.
	DisruptionMarker
)

// String returns the source's name in metrics and messages.
func (s Source) String() string {
	return [...]string{"off", "generation_counter", "disruption_marker"}[s]
}

// layout is the part of the page that is read here. All fields are
// little-endian, as both processors are.
type layout struct {
	magic      uint32
	size       uint32
	version    uint16
	_          [2]byte
	seq        atomic.Uint32 // odd while the hypervisor writes what follows
	marker     atomic.Uint64
	flags      atomic.Uint64
	_          [72]byte
	generation atomic.Uint64
}

const (
	pageMagic   = 0x4b4c4356 // "VCLK"
	pageVersion = 1
	// sizes of a page that ends with its flags, or with its generation counter
	sizeFlags, sizeGeneration = 32, 112
	// flagGeneration: the page has a generation counter.
	flagGeneration = 1 << 8
	// tries is how often to read the page while it is being written. A hypervisor's update takes
	// less than a microsecond; the tries take longer.
	tries = 1000
)

// Page reads the page. It is safe for concurrent use.
type Page struct {
	*layout
	seen atomic.Pointer[state]
	off  error // the reason why the status is Off
}

// state is the content of the page when its counter of updates was seq.
type state struct {
	seq        uint32
	source     Source
	generation uint64
}

// System returns the machine's page, which is never nil. The first call opens it.
func System() *Page { return system() }

var system = sync.OnceValue(open)

func open() *Page {
	path := os.Getenv(PathVariable)
	if path == "" {
		path = Device
	}
	p, err := Open(path)
	if err != nil {
		p = &Page{layout: new(layout), off: err}
		p.seen.Store(new(state))
	}
	return p
}

// Open maps the page at path; it stays mapped until the process ends. An error says why the page
// cannot be used: it is missing, not readable, or of an unknown format.
func Open(path string) (*Page, error) {
	l, err := mapPage(path)
	if err != nil {
		return nil, fmt.Errorf("vmclock: %w", err)
	}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("vmclock: %s: %w", path, err)
	}
	p := &Page{layout: l}
	p.look()
	return p, nil
}

func (l *layout) check() error {
	switch {
	case l.magic != pageMagic:
		return fmt.Errorf("not a vmclock page: it begins with %#x, not %#x", l.magic, pageMagic)
	case l.version != pageVersion:
		return fmt.Errorf("page version %d is not supported, only version %d", l.version, pageVersion)
	case l.size < sizeFlags:
		return fmt.Errorf("%w: its size field is %d bytes, need at least %d", errShort, l.size, sizeFlags)
	}
	return nil
}

var errShort = errors.New("the page is too short")

// Version returns the page's update counter, which costs one load: while it stays the same, so
// does the generation.
func (p *Page) Version() uint32 { return p.seq.Load() }

// Generation returns a number that changes whenever this machine is restored from a snapshot, and
// that is constant while [Page.Status] is Off. It does not wait. The number was current at some
// moment during the call: to compare it with the last known one, load the known one first.
//
// If the hypervisor is writing the page and does not finish within a thousand tries, the
// generation counts as changed. That is safe: the old number may belong to the machine that was
// copied. A page that stays in this state counts as one change.
func (p *Page) Generation() uint64 {
	if s := p.seen.Load(); p.seq.Load() == s.seq {
		return s.generation
	}
	return p.look()
}

// Status returns the source of the generation. If the source is Off, the error says why.
func (p *Page) Status() (Source, error) {
	return p.seen.Load().source, p.off
}

// look reads the page and stores its content. A delayed call may store an old state: its seq
// differs from the page's, so it is never used.
func (p *Page) look() uint64 {
	s := state{}
	for range tries {
		s = p.read()
		if s.seq&1 == 0 && s.seq == p.seq.Load() {
			p.seen.Store(&s)
			return s.generation
		}
	}
	// seq is odd, so its product is never zero: the number differs from every one before the
	// update.
	s.seq |= 1
	s.generation ^= uint64(s.seq) * 0x9e3779b97f4a7c15
	p.seen.Store(&s)
	return s.generation
}

// read returns the page's state. The state is torn if seq is odd or has changed since.
func (l *layout) read() state {
	s := state{seq: l.seq.Load(), source: DisruptionMarker}
	marker, generation := l.marker.Load(), l.generation.Load()
	testHookReading()
	if l.flags.Load()&flagGeneration != 0 && l.size >= sizeGeneration {
		s.source, s.generation = GenerationCounter, generation
	} else {
		s.generation = marker
	}
	return s
}

// testHookReading is called while the page is being read, which is rare.
var testHookReading = func() {}
