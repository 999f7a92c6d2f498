// Package vmclock detects that this machine was restored from a snapshot, which the hypervisor
// reports in Linux's vmclock page (include/uapi/linux/vmclock-abi.h, version 1). It works on Linux
// on amd64 and arm64, if the page exists; elsewhere it detects nothing, and its status is [Off].
// idgen, lease, entropy and filestore share it.
package vmclock

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Device is the page's path, unless the environment variable [PathVariable] sets another, which may
// be a plain file. A plain file must keep its length while a process uses it.
const (
	Device       = "/dev/vmclock0"
	PathVariable = "TRACEFLAKE_VMCLOCK"
)

// Signal is the part of the page that a Machine reads.
type Signal int

const (
	// Off means that no page is read: the generation never changes.
	Off Signal = iota
	// GenerationCounter changes when the machine is restored from a snapshot.
	GenerationCounter
	// DisruptionMarker also changes on a live migration. It is read if the page has no counter.
	DisruptionMarker
)

// String returns the signal's name in metrics and messages.
func (s Signal) String() string {
	return [...]string{"off", "generation_counter", "disruption_marker"}[s]
}

// page is the part of the page that is read here. All fields are little-endian, as both
// architectures are.
type page struct {
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
	flagGeneration            = 1 << 8 // the page has a generation counter
	// to read the page while it is being written, which takes less than a microsecond
	tries = 1000
)

// Machine is a machine that may be restored from snapshots. It is safe for concurrent use.
type Machine struct {
	page *page
	seen atomic.Pointer[state]
	off  error // the reason why the status is Off
}

// state is the content of the page when its counter of updates was seq.
type state struct {
	seq        uint32
	signal     Signal
	generation uint64
}

// System returns this machine, never nil. The first call opens its page.
var System = sync.OnceValue(open)

func open() *Machine {
	c, err := Open(cmp.Or(os.Getenv(PathVariable), Device))
	if err != nil {
		c = &Machine{page: new(page), off: err}
		c.seen.Store(new(state))
	}
	return c
}

// Open maps the page at path; it stays mapped until the process ends. An error says why the page
// cannot be used: it is missing, not readable, or of an unknown format.
func Open(path string) (*Machine, error) {
	p, err := mapPage(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("vmclock: %w", err)
	case p.magic != pageMagic:
		return nil, fmt.Errorf("vmclock: %s is not a vmclock page: it begins with %#x, not %#x",
			path, p.magic, pageMagic)
	case p.version != pageVersion:
		return nil, fmt.Errorf("vmclock: %s: page version %d is not supported, only version %d",
			path, p.version, pageVersion)
	case p.size < sizeFlags:
		return nil, fmt.Errorf(
			"vmclock: %s is too short: its size field is %d bytes, need at least %d", path, p.size,
			sizeFlags)
	}
	c := &Machine{page: p}
	c.refresh()
	return c, nil
}

// Version returns the page's update counter, for reading only: while it stays the same, so does the
// generation.
func (m *Machine) Version() *atomic.Uint32 { return &m.page.seq }

// Generation returns a number that changes whenever this machine is restored from a snapshot, and
// that is constant while [Machine.Status] is Off. It does not wait. The number was current at some
// moment during the call: to compare it with the last known one, load the known one first. If the
// hypervisor does not finish writing the page within a thousand tries, the generation counts as
// changed, once: the old number may belong to the machine that was copied.
func (m *Machine) Generation() uint64 {
	if s := m.seen.Load(); m.page.seq.Load() == s.seq {
		return s.generation
	}
	return m.refresh()
}

// Status returns the signal that is read. If it is Off, the error says why.
func (m *Machine) Status() (Signal, error) { return m.seen.Load().signal, m.off }

// Page returns the beginning of the page, whatever it contains, as raw material for random
// numbers. It may be torn.
func (m *Machine) Page() (words [sizeGeneration / 8]uint64) {
	page := (*[sizeGeneration / 8]uint64)(unsafe.Pointer(m.page))
	for i := range words {
		words[i] = atomic.LoadUint64(&page[i])
	}
	return words
}

// refresh reads the page and stores its content. A delayed call may store an old state: its seq
// differs from the page's, so it is never used.
func (m *Machine) refresh() uint64 {
	s := state{}
	for range tries {
		s = m.page.read()
		if s.seq&1 == 0 && s.seq == m.page.seq.Load() {
			m.seen.Store(&s)
			return s.generation
		}
	}
	// seq is odd, so its product is never zero: the number differs from every one before the
	// update.
	s.seq |= 1
	s.generation ^= uint64(s.seq) * 0x9e3779b97f4a7c15
	m.seen.Store(&s)
	return s.generation
}

// read returns the page's state. The state is torn if seq is odd or has changed since.
func (p *page) read() state {
	s := state{seq: p.seq.Load(), signal: DisruptionMarker}
	s.generation = p.marker.Load()
	if p.flags.Load()&flagGeneration != 0 && p.size >= sizeGeneration {
		s.signal, s.generation = GenerationCounter, p.generation.Load()
	}
	return s
}
