package randflake

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"
	"unsafe"

	"github.com/traceflake/traceflake/sparx64"
)

const (
	// The fields of a raw word, from the left.
	secondBits, nodeBits, sequenceBits = 30, 17, 17
	secondShift                        = nodeBits + sequenceBits

	// Epoch is the first second of Randflake time, in Unix seconds: 2024-10-27T03:33:20Z.
	Epoch = 1_730_000_000
	// EndOfLife is the first second past Randflake time, in Unix seconds: 2058-11-05T17:10:24Z.
	EndOfLife = Epoch + 1<<secondBits
	// MaxNode is the highest node number.
	MaxNode = 1<<nodeBits - 1
	// MaxSequence is the highest sequence number of one node in one second.
	MaxSequence = 1<<sequenceBits - 1
)

var (
	// ErrBeforeEpoch is returned for a time before [Epoch]. If a Generator returns it, set the clock.
	ErrBeforeEpoch = errors.New("randflake: the time is before the epoch, 2024-10-27T03:33:20Z")
	// ErrEndOfLife is returned for a time at or past [EndOfLife].
	ErrEndOfLife = errors.New("randflake: the time is past the end of Randflake time, 2058-11-05T17:10:23Z")
	// ErrInvalidParts is returned by Encode if a node or sequence number does not fit in 17 bits.
	ErrInvalidParts = errors.New("randflake: invalid parts")
	errNoSecret     = errors.New("randflake: the codec has no secret: use NewCodec")
)

// Parts are the decoded fields of an ID.
type Parts struct {
	Time     time.Time // a whole second, UTC
	Node     uint32    // 0 to MaxNode
	Sequence uint32    // 0 to MaxSequence
}

// Codec turns parts into IDs and back under one secret. It is safe for concurrent use and never
// exposes its secret, not to fmt, slog or JSON either. A zero Codec has no secret: it encodes and
// decodes nothing.
type Codec struct {
	cipher *sparx64.Cipher
	secret *[sparx64.KeySize]byte // a pointer, of which fmt prints the address if it cannot call Format
}

// NewCodec returns the codec of a secret, which must have 16 bytes; for any other length the error
// is a [sparx64.KeySizeError]. The secret is copied.
func NewCodec(secret []byte) (*Codec, error) {
	c, err := sparx64.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("randflake: secret: %w", err)
	}
	own := [sparx64.KeySize]byte(secret)
	return &Codec{c, &own}, nil
}

// Encode returns the ID of p; its time is truncated to the second. Errors: [ErrBeforeEpoch],
// [ErrEndOfLife], [ErrInvalidParts]. Under each secret exactly one tuple of parts encodes to zero.
func (c *Codec) Encode(p Parts) (ID, error) {
	if c == nil || c.cipher == nil {
		return 0, errNoSecret
	}
	second, err := secondOf(p.Time)
	if err != nil {
		return 0, err
	}
	if p.Node > MaxNode || p.Sequence > MaxSequence {
		return 0, fmt.Errorf("%w: node %d, sequence %d; the maximum of both is %d", ErrInvalidParts, p.Node, p.Sequence, MaxNode)
	}
	return c.encrypt(second<<secondShift | uint64(p.Node)<<sequenceBits | uint64(p.Sequence)), nil
}

// Decode returns the parts of id. An ID generated under another secret, or at random, decodes to
// random parts.
func (c *Codec) Decode(id ID) Parts {
	if c.cipher == nil {
		return Parts{}
	}
	raw := c.decrypt(id)
	return Parts{
		Time:     timeOf(raw >> secondShift),
		Node:     uint32(raw >> sequenceBits & MaxNode),
		Sequence: uint32(raw & MaxSequence),
	}
}

// Derive returns 32 bytes that depend on the secret and on purpose, and reveal nothing about the
// secret: HKDF-SHA256. A zero Codec returns random bytes, since everyone would know its key.
func (c *Codec) Derive(purpose string) (key [32]byte) {
	if c.secret == nil {
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
	c.cipher.EncryptRun(unsafe.Slice((*uint64)(unsafe.SliceData(dst)), len(dst)), raw)
}

// secondOf returns the second of t since the epoch. It checks the range before it subtracts: a
// time in 1970 is refused and does not wrap around.
func secondOf(t time.Time) (uint64, error) {
	unix := t.Unix()
	if unix < Epoch {
		return 0, ErrBeforeEpoch
	}
	if unix >= EndOfLife {
		return 0, ErrEndOfLife
	}
	return uint64(unix - Epoch), nil
}

func timeOf(second uint64) time.Time {
	return time.Unix(Epoch+int64(second), 0).UTC()
}

// ErrInvalidID is returned by [Parse] if the text is not a Randflake ID as [ID.String] writes it.
var ErrInvalidID = errors.New("randflake: invalid ID")

// ID is a Randflake ID, encrypted. A [Generator] never generates the ID zero.
type ID uint64

// Parse reads what [ID.String] writes, and nothing else: one to 13 digits of 0-9a-v, most
// significant first, lower case, no leading zero, no padding. The error wraps [ErrInvalidID].
func Parse(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 32, 64)
	if err != nil || ID(n).String() != s {
		return 0, fmt.Errorf("%w: want a number below 2^64 in the digits 0-9a-v, without leading zeros", ErrInvalidID)
	}
	return ID(n), nil
}

// String returns the ID in base 32 with the digits 0-9a-v.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 32) }
