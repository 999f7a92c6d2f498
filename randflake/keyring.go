package randflake

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/sparx64"
)

// ErrInvalidKeyring is returned by [ParseKeyring] with the number of the invalid line, never with
// its content.
var ErrInvalidKeyring = errors.New("randflake: invalid keyring")

// Keyring holds a fleet's secrets: the first is used for new IDs, and IDs under all of them are
// accepted. It is immutable and safe for concurrent use, and like [Codec] it never exposes its
// secrets. The zero Keyring and a nil one have no secret.
type Keyring struct {
	codecs []*Codec
}

// NewKeyring returns a keyring with one secret, or without a secret if c is nil.
func NewKeyring(c *Codec) *Keyring {
	if c == nil {
		return new(Keyring)
	}
	return &Keyring{codecs: []*Codec{c}}
}

// ParseKeyring reads one secret per line, 32 hex digits each. Surrounding space is ignored, as are
// empty lines and lines that start with #. It takes 1 to 64 secrets, all different: each further
// one makes a forged ID more likely to pass. The error wraps [ErrInvalidKeyring].
func ParseKeyring(text string) (*Keyring, error) {
	const maxSecrets = 64 // a region each, of 32, and their rotation
	k, seen, n := new(Keyring), make(map[string]int), 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		secret, err := hex.DecodeString(line)
		problem := ""
		switch before := seen[string(secret)]; {
		case len(line) != 2*sparx64.KeySize:
			problem = fmt.Sprintf("has %d characters, want %d hex digits", len(line),
				2*sparx64.KeySize)
		case err != nil: // whose text shows a character of the secret
			problem = "has a character that is not a hex digit"
		case bytes.Count(secret, []byte{0}) == len(secret):
			problem = "is all zeros"
		case before != 0:
			problem = fmt.Sprintf("repeats line %d", before)
		case len(k.codecs) == maxSecrets:
			problem = fmt.Sprintf("is one secret too many, %d are allowed", maxSecrets)
		}
		if problem != "" {
			return nil, fmt.Errorf("%w: line %d %s", ErrInvalidKeyring, n, problem)
		}
		seen[string(secret)] = n
		codec, _ := NewCodec(secret) // the length is right
		k.codecs = append(k.codecs, codec)
	}
	if len(k.codecs) == 0 {
		return nil, fmt.Errorf("%w: it has no secret", ErrInvalidKeyring)
	}
	return k, nil
}

// Codec returns the codec of the first secret, which is used for new IDs, or nil if the keyring has
// no secret.
func (k *Keyring) Codec() *Codec {
	if codecs := k.Codecs(); len(codecs) > 0 {
		return codecs[0]
	}
	return nil
}

// Codecs returns the codecs of all secrets, in order. The slice is the keyring's own: do not change
// it.
func (k *Keyring) Codecs() []*Codec {
	if k == nil {
		return nil
	}
	return k.codecs
}

// Format keeps the secrets out of logs.
func (Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("randflake.Keyring(hidden)")) }
