package sparx64

import (
	"encoding/binary"
	"fmt"
	"unsafe" // also for linkname
)

const (
	// BlockSize is the size of a block in bytes.
	BlockSize = 8
	// KeySize is the size of a key in bytes.
	KeySize = 16
)

// Cipher is SPARX-64/128 under one key. It implements [crypto/cipher.Block], never changes after
// NewCipher and is safe for concurrent use.
type Cipher struct{ keys schedule }

// NewCipher returns the cipher under key, or an error if key does not have [KeySize] bytes. The key
// is copied.
func NewCipher(key []byte) (*Cipher, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("sparx64: the key has %d bytes, want %d", len(key), KeySize)
	}
	return &Cipher{keys: expand((*[KeySize]byte)(key))}, nil
}

// BlockSize returns 8.
func (c *Cipher) BlockSize() int { return BlockSize }

// Encrypt encrypts the first block of src into dst. Both have at least BlockSize bytes and overlap
// entirely or not at all; it panics otherwise.
func (c *Cipher) Encrypt(dst, src []byte) {
	checkBlocks(dst, src)
	binary.BigEndian.PutUint64(dst, c.EncryptUint64(binary.BigEndian.Uint64(src)))
}

// Decrypt is the inverse of Encrypt.
func (c *Cipher) Decrypt(dst, src []byte) {
	checkBlocks(dst, src)
	binary.BigEndian.PutUint64(dst, c.DecryptUint64(binary.BigEndian.Uint64(src)))
}

// EncryptUint64 encrypts one block.
func (c *Cipher) EncryptUint64(block uint64) uint64 { return c.keys.encrypt(block) }

// DecryptUint64 is the inverse of EncryptUint64.
func (c *Cipher) DecryptUint64(block uint64) uint64 { return c.keys.decrypt(block) }

// encryptNumbersOf encrypts len(dst) consecutive numbers, the first, the first + 1 and so on,
// modulo 2^64, with the fastest backend. A number is a block in little-endian byte order, and so is
// its encryption: dst[i] is bits.ReverseBytes64(c.EncryptUint64(bits.ReverseBytes64(first + i))).
// It is for package randflake alone, which links it by its name.
//
//go:linkname encryptNumbersOf
func encryptNumbersOf(c *Cipher, dst []uint64, first uint64) { encryptRun(&c.keys, dst, first) }

// Format keeps the round keys, which reveal the key, out of logs.
func (Cipher) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("sparx64.Cipher(hidden)")) }

func checkBlocks(dst, src []byte) {
	if len(src) < BlockSize {
		panic("sparx64: input not full block")
	}
	if len(dst) < BlockSize {
		panic("sparx64: output not full block")
	}
	if inexactOverlap(&dst[0], &src[0]) {
		panic("sparx64: invalid buffer overlap")
	}
}

// inexactOverlap reports whether two blocks share memory without being the same. It compares
// addresses only, as crypto/internal/alias does.
func inexactOverlap(a, b *byte) bool {
	from, to := uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b))
	return from != to && from < to+BlockSize && to < from+BlockSize
}
