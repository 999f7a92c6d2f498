package randflake

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrInvalidKeyring is returned by [ParseKeyring] with the number of the invalid line, never with
// its content.
var ErrInvalidKeyring = errors.New("randflake: invalid keyring")

const (
	secretLen  = 16
	maxSecrets = 16
)

// Keyring holds a fleet's secrets: the first is used for new IDs, and IDs of all are accepted. It
// is immutable and safe for concurrent use, and like [Codec] it never exposes its secrets. The
// zero Keyring and a nil one have no secret.
type Keyring struct {
	codecs []*Codec
}

// NewKeyring returns the keyring of one secret. If c is nil, it has none.
func NewKeyring(c *Codec) *Keyring {
	if c == nil {
		return new(Keyring)
	}
	return &Keyring{codecs: []*Codec{c}}
}

// ParseKeyring reads one secret per line, 32 hex digits each. Surrounding space is ignored, as are
// empty lines and lines that start with #. It takes 1 to 16 secrets, all different: each further
// one makes a forged ID more likely to pass. The error wraps [ErrInvalidKeyring] or is r's.
func ParseKeyring(r io.Reader) (*Keyring, error) {
	k := new(Keyring)
	seen := make(map[[secretLen]byte]int)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(line) != 2*secretLen {
			return nil, fmt.Errorf("%w: line %d has %d characters, want %d hex digits", ErrInvalidKeyring, n, len(line), 2*secretLen)
		}
		var secret [secretLen]byte
		// The error of Decode would show a character of the secret.
		if _, err := hex.Decode(secret[:], line); err != nil {
			return nil, fmt.Errorf("%w: line %d has a character that is not a hex digit", ErrInvalidKeyring, n)
		}
		if secret == [secretLen]byte{} {
			return nil, fmt.Errorf("%w: line %d is all zeros", ErrInvalidKeyring, n)
		}
		if before, ok := seen[secret]; ok {
			return nil, fmt.Errorf("%w: line %d repeats line %d", ErrInvalidKeyring, n, before)
		}
		if len(k.codecs) == maxSecrets {
			return nil, fmt.Errorf("%w: line %d is one secret too many, %d are allowed", ErrInvalidKeyring, n, maxSecrets)
		}
		codec, err := NewCodec(secret[:])
		if err != nil {
			return nil, err
		}
		seen[secret] = n
		k.codecs = append(k.codecs, codec)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line is too long to be a secret", ErrInvalidKeyring)
	case err != nil:
		return nil, fmt.Errorf("randflake: keyring: %w", err)
	case len(k.codecs) == 0:
		return nil, fmt.Errorf("%w: it has no secret", ErrInvalidKeyring)
	}
	return k, nil
}

// Codec returns the codec of the first secret, which is used for new IDs, or nil without one.
func (k *Keyring) Codec() *Codec {
	if k == nil || len(k.codecs) == 0 {
		return nil
	}
	return k.codecs[0]
}

// Codecs returns the codecs of all secrets that are accepted, in their order.
func (k *Keyring) Codecs() []*Codec {
	if k == nil {
		return nil
	}
	return slices.Clone(k.codecs)
}

// Format keeps the secrets out of logs.
func (Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("randflake.Keyring(hidden)")) }
