package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/redact"
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
func generateSecret(path, id, about string) (*secretFile, error) {
	secret := make([]byte, 16)
	entropy.Read(secret)
	text := fmt.Sprintf("# lease store %s %s\n%x\n", id, about, secret)
	err := writeNew(path+"."+id+unfinished, text)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return openTemporary(path, id)
}

// at describes the place of a store.
func at(c fleet.Config) string { return fmt.Sprintf("at %q", redact.Address(c.Store)) }

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

// secretOf opens the secret file of a store that exists.
func secretOf(path string, d lease.Description) (*secretFile, error) {
	secret, err := openSecret(path, d.ID)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	if missing || !slices.Contains(d.Secrets, d.Fingerprint(secret.codec)) {
		advice := "give the secret file of that store, or create another one elsewhere"
		own := path + "." + d.ID + unfinished
		if _, err := os.Stat(own); err == nil {
			advice = fmt.Sprintf("it is in %s: rename it to OTHER.%s%s, and give the name OTHER",
				own, d.ID, unfinished)
		}
		return nil, fmt.Errorf("%w, with the ID %s, created at %s; its secret is not in %s: %s",
			lease.ErrExists, d.ID, rfc3339(d.Created), path, advice)
	}
	return secret, nil
}

// newSecret generates the secret file of a new store.
func newSecret(id string, c fleet.Config) (*secretFile, error) {
	if _, err := os.Lstat(c.SecretFile); err == nil {
		return nil, fmt.Errorf(
			"%s exists, and a new store needs a new secret: name a file that does not exist",
			c.SecretFile)
	}
	return generateSecret(c.SecretFile, id, at(c))
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

// discard removes a new secret that no store has.
func (s *secretFile) discard() error {
	if s == nil || s.temporary == "" {
		return nil
	}
	return os.Remove(s.temporary)
}
