package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/randflake"
)

// secretFile is a file with a secret, nil for a store that has its own. A new secret is first
// written to a temporary file, which is renamed once the store has the secret. The temporary name
// contains the store's ID: only the store for which a secret was generated ever gets it, even if
// the same URL leads to another server when an interrupted command is repeated.
type secretFile struct {
	path      string
	id        string // of the store
	temporary string // the present name of a new secret; "" otherwise
	codec     *randflake.Codec
}

const unfinished = ".unfinished"

// openSecret reads a secret, or the temporary file of an interrupted command for the store with an
// ID. The error wraps [fs.ErrNotExist] if neither exists.
func openSecret(path, id string) (*secretFile, error) {
	codec, err := codecIn(path)
	if errors.Is(err, fs.ErrNotExist) {
		return openTemporary(path, id)
	}
	return &secretFile{path: path, id: id, codec: codec}, err
}

func openTemporary(path, id string) (*secretFile, error) {
	temporary := path + "." + id + unfinished
	codec, err := codecIn(temporary)
	return &secretFile{path, id, temporary, codec}, err
}

// codecIn returns the codec of the first secret in a file.
func codecIn(path string) (*randflake.Codec, error) {
	k, err := fleet.LoadKeyring(path)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return k.Codec(), nil
}

// generateSecret writes a new secret for the store with an ID, unless a concurrent command has
// written one.
func generateSecret(path, id string, s openStore) (*secretFile, error) {
	secret := make([]byte, 16)
	entropy.Read(secret)
	text := fmt.Sprintf("# lease store %s at %q\n%x\n", id, s, secret)
	err := writeNew(path+"."+id+unfinished, text)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return openTemporary(path, id)
}

// writeNew writes a file that must not exist, and syncs it.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// link is replaced by a test.
var link = os.Link

// keep renames a new secret to its final name.
func (s *secretFile) keep() error {
	if s == nil || s.temporary == "" {
		return nil
	}
	err := link(s.temporary, s.path) // unlike Rename it replaces no file
	if err == nil {
		return os.Remove(s.temporary)
	}
	// the file system has no links
	if _, missing := os.Lstat(s.path); errors.Is(missing, fs.ErrNotExist) {
		return os.Rename(s.temporary, s.path)
	}
	return err
}

// keepAbove gives a new secret the name of the secret file, above the lines that the file has now.
func (s *secretFile) keepAbove() error {
	text, err := os.ReadFile(s.temporary)
	if err != nil {
		return err
	}
	older, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	lines := strings.SplitAfterN(string(text), "\n", 3) // the first two are new
	whole := s.temporary + "." + lease.NewNonce()
	if err := writeNew(whole, lines[0]+lines[1]+string(older)); err != nil {
		return err
	}
	if err := os.Rename(whole, s.temporary); err != nil {
		return err
	}
	return os.Rename(s.temporary, s.path)
}
