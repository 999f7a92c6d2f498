// Package entropy draws random bytes that differ between copies of a machine even if their kernels
// repeat themselves.
//
// A virtual machine that is restored from a snapshot continues with the snapshot's random numbers
// until its kernel learns of the restore, some milliseconds later or never. Until then every copy
// reads the same bytes. So each draw hashes the kernel's bytes together with all that may differ
// between copies: the processor's random words (amd64 with RDRAND), the vmclock page, the wall and
// the monotonic clock to the nanosecond, the time-stamp counter (amd64), the process ID, and how
// often the process has drawn before. Two copies draw the same bytes only if all of these are
// equal: never with RDRAND. The result is at least as hard to guess as the kernel's bytes. The
// package is shared by idgen, lease and filestore, which must not import each other for it.
package entropy

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// Source holds the inputs of a draw. Tests may replace fields before the first draw. A Source is
// safe for concurrent use.
type Source struct {
	Kernel    func(b []byte)           // fills b
	Processor func() (words [4]uint64) // random words, 0 if there are none
	Page      func() []byte            // the vmclock page, empty if there is none
	Now       func() time.Time         // the wall clock
	Elapsed   func() time.Duration     // the monotonic clock
	Ticks     func() uint64            // the time-stamp counter, 0 if there is none
	PID       int

	draws atomic.Uint64
}

// NewSource returns the source of this machine.
func NewSource() *Source {
	started := time.Now()
	return &Source{
		Kernel:    func(b []byte) { _, _ = rand.Read(b) }, // never fails
		Processor: random,
		Page:      vmclock.System().Page,
		Now:       time.Now,
		Elapsed:   func() time.Duration { return time.Since(started) },
		Ticks:     ticks,
		PID:       os.Getpid(),
	}
}

var system = sync.OnceValue(NewSource)

// Read fills b, of at most 8160 bytes, with this machine's random bytes.
func Read(b []byte) { system().Read(b) }

// Read fills b, of at most 8160 bytes. Every call reads every input again, so a draw after a
// restore cannot be predicted or repeated from what was known before.
func (s *Source) Read(b []byte) {
	var kernel [32]byte
	s.Kernel(kernel[:])
	material := kernel[:]
	add := func(n uint64) { material = binary.LittleEndian.AppendUint64(material, n) }
	for _, word := range s.Processor() {
		add(word)
	}
	add(uint64(s.Now().UnixNano()))
	add(uint64(s.Elapsed()))
	add(s.Ticks())
	add(uint64(s.PID))
	add(s.draws.Add(1))
	material = append(material, s.Page()...)
	out, err := hkdf.Key(sha256.New, material, nil, "traceflake", len(b))
	if err != nil {
		panic(err) // b is too long
	}
	copy(b, out)
}
