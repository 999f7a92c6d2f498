package randflake

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"time"
	"unsafe" // also for linkname

	"github.com/traceflake/traceflake/sparx64"
)

var errNoSecret = errors.New("randflake: the codec has no secret: use NewCodec")

// Parts are the decoded fields of an ID.
type Parts struct {
	Time     time.Time `json:"time"`     // a whole second, UTC
	Node     uint32    `json:"node"`     // 0 to MaxNode
	Sequence uint32    `json:"sequence"` // 0 to 131071
}

// Codec turns parts into IDs and back under one secret. It is safe for concurrent use and never
// exposes its secret, even to fmt, slog or JSON. The zero Codec and a nil one have no secret: they
// encode and decode nothing.
type Codec struct {
	cipher *sparx64.Cipher
	// secret is a pointer because fmt prints an address where it cannot call Format.
	secret *[sparx64.KeySize]byte
}

// NewCodec returns the codec of a secret, or an error if it does not have 16 bytes. The secret is
// copied.
func NewCodec(secret []byte) (*Codec, error) {
	c, err := sparx64.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("randflake: secret: %w", err)
	}
	own := [sparx64.KeySize]byte(secret)
	return &Codec{c, &own}, nil
}

// Encode returns the ID of p; its time is truncated to the second. It fails if a number does not
// fit in 17 bits, and with [ErrBeforeEpoch] or [ErrEndOfLife]. Under each secret exactly one tuple
// of parts encodes to zero.
func (c *Codec) Encode(p Parts) (ID, error) {
	if c == nil || c.cipher == nil {
		return 0, errNoSecret
	}
	second, err := secondOf(p.Time)
	if err != nil {
		return 0, err
	}
	if p.Node > MaxNode || p.Sequence > maxSequence {
		return 0, fmt.Errorf("randflake: invalid parts: node %d, sequence %d; "+
			"the maximum of both is %d", p.Node, p.Sequence, MaxNode)
	}
	return c.encrypt(second<<secondShift | uint64(p.Node)<<sequenceBits | uint64(p.Sequence)), nil
}

// Decode returns the parts of id. An ID generated under another secret, or at random, decodes to
// random parts.
func (c *Codec) Decode(id ID) Parts {
	if c == nil || c.cipher == nil {
		return Parts{}
	}
	raw := c.decrypt(id)
	return Parts{
		Time:     timeOf(raw >> secondShift),
		Node:     uint32(raw >> sequenceBits & MaxNode),
		Sequence: uint32(raw & maxSequence),
	}
}

// Derive returns 32 bytes that depend on the secret and on purpose, and reveal nothing about the
// secret: HKDF-SHA256. A zero Codec returns random bytes, since everyone would know its key.
func (c *Codec) Derive(purpose string) (key [32]byte) {
	if c == nil || c.secret == nil {
		_, _ = rand.Read(key[:]) // never fails
		return key
	}
	derived, err := hkdf.Key(sha256.New, c.secret[:], nil, "traceflake "+purpose, 32)
	if err != nil {
		panic(err) // HKDF can return 32 bytes
	}
	return [32]byte(derived)
}

// Format keeps the secret out of logs.
func (Codec) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("randflake.Codec(hidden)")) }

func (c *Codec) encrypt(raw uint64) ID {
	return ID(bits.ReverseBytes64(c.cipher.EncryptUint64(bits.ReverseBytes64(raw))))
}

func (c *Codec) decrypt(id ID) uint64 {
	return bits.ReverseBytes64(c.cipher.DecryptUint64(bits.ReverseBytes64(uint64(id))))
}

// encryptRun writes the IDs, which are uint64s, of len(dst) consecutive raw words.
func (c *Codec) encryptRun(dst []ID, raw uint64) {
	encryptNumbers(c.cipher, unsafe.Slice((*uint64)(unsafe.SliceData(dst)), len(dst)), raw)
}

//go:linkname encryptNumbers github.com/traceflake/traceflake/sparx64.encryptNumbersOf
//go:noescape
func encryptNumbers(c *sparx64.Cipher, dst []uint64, first uint64)
