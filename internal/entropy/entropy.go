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
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// inputs is the raw material of a draw.
type inputs struct {
	kernel                          [32]byte
	processor                       [4]uint64 // random words, 0 if there are none
	wall, elapsed, ticks, pid, draw uint64    // draw counts the process's draws
	page                            [14]uint64
}

var (
	started = time.Now()
	draws   atomic.Uint64
)

// Read fills b, of at most 8160 bytes, with random bytes. Every call reads every input again, so a
// draw after a restore cannot be predicted or repeated from what was known before.
func Read(b []byte) { current().read(b) }

func current() *inputs {
	in := &inputs{
		processor: random(),
		wall:      uint64(time.Now().UnixNano()),
		elapsed:   uint64(time.Since(started)),
		ticks:     ticks(),
		pid:       uint64(os.Getpid()),
		draw:      draws.Add(1),
		page:      vmclock.System().Page(),
	}
	_, _ = rand.Read(in.kernel[:]) // never fails
	return in
}

func (in *inputs) read(b []byte) {
	material, _ := binary.Append(nil, binary.LittleEndian, in) // its size is constant
	out, err := hkdf.Key(sha256.New, material, nil, "traceflake", len(b))
	if err != nil {
		panic(err) // b is too long
	}
	copy(b, out)
}
