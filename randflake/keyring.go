package randflake

import (
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
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("randflake: keyring: %w", err)
	}
	k := new(Keyring)
	seen := make(map[string]int)
	n := 0
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: line %d "+format, append([]any{ErrInvalidKeyring, n}, args...)...)
	}
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(line) != 2*secretLen {
			return nil, invalid("has %d characters, want %d hex digits", len(line), 2*secretLen)
		}
		secret := make([]byte, secretLen)
		// The error of Decode would show a character of the secret.
		if _, err := hex.Decode(secret, line); err != nil {
			return nil, invalid("has a character that is not a hex digit")
		}
		switch before := seen[string(secret)]; {
		case bytes.Count(secret, []byte{0}) == secretLen:
			return nil, invalid("is all zeros")
		case before != 0:
			return nil, invalid("repeats line %d", before)
		case len(k.codecs) == maxSecrets:
			return nil, invalid("is one secret too many, %d are allowed", maxSecrets)
		}
		seen[string(secret)] = n
		codec, err := NewCodec(secret)
		if err != nil {
			return nil, err
		}
		k.codecs = append(k.codecs, codec)
	}
	if len(k.codecs) == 0 {
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
