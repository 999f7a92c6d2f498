package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// secretFile is a file with a secret, nil for a store that has its own. A new secret is first
// written to a temporary file, which is renamed once the store has the secret, so that a rerun
// after an interruption finds it. The file records the store for which it was generated, so that no
// other store ever gets the secret.
type secretFile struct {
	path  string
	codec *randflake.Codec
	fresh bool // under the other name

	id      string // of the store, "" if unknown
	address string // of the store, without its secrets
	url     string // a fingerprint of the whole URL
}

const unfinished = ".unfinished"

// comment is the first line of a new secret.
const comment = "# lease store %s at %q whose URL has the fingerprint %s\n"

// urlFingerprint distinguishes URLs that differ only in parts that Address leaves out. Without the
// secret, nobody can use it to guess passwords.
func urlFingerprint(c *randflake.Codec, url string) string {
	key := c.Derive("lease store at " + url)
	return hex.EncodeToString(key[:8])
}

// openSecret reads a secret, or the temporary file of an interrupted command. The error wraps
// [fs.ErrNotExist] if neither exists.
func openSecret(path string) (*secretFile, error) {
	s := &secretFile{path: path}
	k, err := settings.LoadKeyring(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.fresh = true
		k, err = settings.LoadKeyring(path + unfinished)
	}
	if err != nil {
		return nil, err
	}
	s.codec = k.Codec()
	if !s.fresh {
		return s, nil
	}
	text, err := os.ReadFile(path + unfinished)
	// A file without the comment may be another store's, and is refused.
	_, _ = fmt.Sscanf(string(text), comment, &s.id, &s.address, &s.url)
	return s, err
}

// generateSecret writes a new secret for the store with an ID, unless a concurrent command has
// written one.
func generateSecret(path, id string, c settings.Settings) (*secretFile, error) {
	var secret [16]byte
	entropy.Read(secret[:])
	codec, err := randflake.NewCodec(secret[:])
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(comment, id, c.Address(), urlFingerprint(codec, c.Store)) +
		hex.EncodeToString(secret[:]) + "\n"
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return openSecret(path)
	}
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path+unfinished))
	}
	return openSecret(path)
}

// secretOf opens the secret file of a store that exists.
func secretOf(path string, d lease.Description) (*secretFile, error) {
	secret, err := openSecret(path)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return nil, fmt.Errorf("secret: %w", err)
	case missing || !slices.Contains(d.Secrets, d.Fingerprint(secret.codec)):
		return nil, fmt.Errorf("%w, with the ID %s, created at %s; its secret is not in %s: "+
			"give the secret file of that store, or create another one elsewhere", lease.ErrExists,
			d.ID, rfc3339(d.Created), path)
	}
	return secret, nil
}

// newSecret opens the secret file of a new store, and generates it unless an interrupted command
// has.
func newSecret(c settings.Settings) (*secretFile, error) {
	secret, err := openSecret(c.SecretFile)
	if errors.Is(err, fs.ErrNotExist) {
		secret, err = generateSecret(c.SecretFile, protocol.NewNonce(), c)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("secret: %w", err)
	case !secret.fresh:
		return nil, fmt.Errorf(
			"%s exists, and a new store needs a new secret: name a file that does not exist",
			secret.path)
	case secret.url != urlFingerprint(secret.codec, c.Store):
		return nil, secret.another()
	}
	return secret, nil
}

// another returns the error for a new secret that was generated for another store.
func (s *secretFile) another() error {
	return fmt.Errorf("%s has the secret of another store, at %q with the ID %q, and no two "+
		"stores may have one secret: name another file, or delete this one if that store is not "+
		"completed any more", s.path+unfinished, s.address, s.id)
}

// link is replaced by a test.
var link = os.Link

// keep renames a new secret to its final name.
func (s *secretFile) keep() error {
	if s == nil || !s.fresh {
		return nil
	}
	err := link(s.path+unfinished, s.path) // unlike Rename it replaces no file
	if err == nil {
		return os.Remove(s.path + unfinished)
	}
	// the file system has no links
	if _, missing := os.Lstat(s.path); errors.Is(missing, fs.ErrNotExist) {
		return os.Rename(s.path+unfinished, s.path)
	}
	return err
}
