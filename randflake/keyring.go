package randflake

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/sparx64"
)

// ErrInvalidKeyring is returned by [ParseKeyring] with the number of the invalid line, never with
// its content.
var ErrInvalidKeyring = errors.New("randflake: invalid keyring")

// Keyring holds a fleet's secrets: the first is used for new IDs, and IDs under all of them are
// accepted, see [Keyring.With]. It is immutable and safe for concurrent use, and like [Codec] it
// never exposes its secrets. The zero Keyring and a nil one have no secret.
type Keyring struct {
	codecs []*Codec
	lives  []life // of each codec
}

// life is the time in which IDs under a secret are accepted. A zero Time is no limit.
type life struct{ from, until time.Time }

// NewKeyring returns a keyring with one secret, or without a secret if c is nil.
func NewKeyring(c *Codec) *Keyring {
	if c == nil {
		return new(Keyring)
	}
	return new(Keyring).With(c, time.Time{}, time.Time{})
}

// With returns a keyring that has the secrets of k and then c, which is valid at times in
// [from, until). A zero Time is no limit.
func (k *Keyring) With(c *Codec, from, until time.Time) *Keyring {
	next := new(Keyring)
	if k != nil {
		*next = *k
	}
	next.codecs = append(slices.Clip(next.codecs), c)
	next.lives = append(slices.Clip(next.lives), life{from, until})
	return next
}

// ParseKeyring reads secrets of 32 hex digits each, separated by spaces or new lines. Lines that
// start with # are ignored. It takes 1 to 64 secrets, all different: each further one makes a
// forged ID more likely to pass. The error wraps [ErrInvalidKeyring].
func ParseKeyring(text string) (*Keyring, error) {
	const maxSecrets = 64 // a region each, of 32, and their rotation
	k, seen, n := new(Keyring), make(map[string]int), 0
	for line := range strings.Lines(text) {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			secret, err := hex.DecodeString(word)
			problem := ""
			switch before := seen[string(secret)]; {
			case len(word) != 2*sparx64.KeySize:
				problem = fmt.Sprintf("has a secret of %d characters, want %d hex digits",
					len(word), 2*sparx64.KeySize)
			case err != nil: // whose text shows a character of the secret
				problem = "has a character that is not a hex digit"
			case bytes.Count(secret, []byte{0}) == len(secret):
				problem = "has a secret of zeros"
			case before != 0:
				problem = fmt.Sprintf("repeats a secret of line %d", before)
			case len(k.codecs) == maxSecrets:
				problem = fmt.Sprintf("has one secret too many, %d are allowed", maxSecrets)
			}
			if problem != "" {
				return nil, fmt.Errorf("%w: line %d %s", ErrInvalidKeyring, n, problem)
			}
			seen[string(secret)] = n
			codec, _ := NewCodec(secret) // the length is right
			k = k.With(codec, time.Time{}, time.Time{})
		}
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

// At returns the secrets that are valid at t, each with its number from 0.
func (k *Keyring) At(t time.Time) iter.Seq2[int, *Codec] {
	return func(yield func(int, *Codec) bool) {
		if k == nil {
			return
		}
		for i, l := range k.lives {
			if !t.Before(l.from) && (l.until.IsZero() || t.Before(l.until)) &&
				!yield(i, k.codecs[i]) {
				return
			}
		}
	}
}

// Format keeps the secrets out of logs.
func (Keyring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("randflake.Keyring(hidden)")) }
