package idgen

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
)

// random generates random IDs. Until the kernel learns of a restore, its bytes are the same in all
// copies of a machine, which at that time have no lease. So the bytes are combined with a mask,
// which differs between copies once they have noticed the restore.
type random struct {
	kernel func() uint64 // nil: kernelBits
	mask   atomic.Uint64
}

// renew draws another mask.
func (r *random) renew(draw func([]byte)) { r.mask.Store(drawn(draw)) }

// id returns random bits that are not all zero.
func (r *random) id() uint64 {
	kernel := r.kernel
	if kernel == nil { // but for tests
		kernel = kernelBits
	}
	for {
		if id := kernel() ^ r.mask.Load(); id != 0 {
			return id
		}
	}
}

func kernelBits() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}
