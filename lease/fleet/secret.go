package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// LoadKeyring returns the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content. It waits for three seconds at most: a
// file may be a FIFO, or on a file system that does not answer. A file that every user of the
// machine can read is reported to otel.Handle.
func LoadKeyring(path string) (*randflake.Keyring, error) {
	k, err := readKeyring(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 &&
		runtime.GOOS != "windows" {
		otel.Handle(lease.Advise(&lease.Error{
			Err: fmt.Errorf("fleet: every user of this machine can read the secret in %s (mode "+
				"%04o)", path, info.Mode().Perm()),
			Fix: "chmod o= on it; in Kubernetes, set the volume's defaultMode to 0440",
		}))
	}
	return k, nil
}

// LoadSecrets returns the secrets of the configuration: Secrets, or those of SecretFile, or those of
// a lease directory. They are for deterministic IDs; [Keys] returns the keys of leased IDs. Errors:
// [ErrConfig] if none are set, and those of [LoadKeyring].
func (c Config) LoadSecrets() (*randflake.Keyring, error) {
	switch {
	case c.Secrets != nil:
		return c.Secrets, nil
	case c.secretFile() == "":
		return nil, fmt.Errorf("%w: %s=%s: set %s or %s to the secret that `traceflake lease "+
			"create` wrote", ErrConfig, storeVar, redact.Address(c.Store), fileVar, secretVar)
	}
	k, err := LoadKeyring(c.secretFile())
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", c.source(), c.lost(err))
	}
	return k, nil
}

// CreateSecrets returns the secrets of the configuration, as LoadSecrets does. If their file does
// not exist, it is created with a new secret and mode 0600, and so is a lease directory. Several
// processes may do so at once: one secret is kept.
func (c Config) CreateSecrets() (*randflake.Keyring, error) {
	k, err := c.LoadSecrets()
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	_, err = limited(c.secretFile(), func() (none struct{}, err error) {
		if c.ownFile() {
			if err := os.Mkdir(c.directory(), 0o700); !errors.Is(err, fs.ErrExist) && err != nil {
				return none, err
			}
		}
		return none, createSecret(c.secretFile())
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", c.source(), driver.Diagnose(err))
	}
	return c.LoadSecrets()
}

// readSecrets is LoadSecrets without reports.
func (c Config) readSecrets() (*randflake.Keyring, error) {
	if c.Secrets != nil {
		return c.Secrets, nil
	}
	k, err := readKeyring(c.secretFile())
	return k, c.lost(err)
}

// lost adds to an error what to do if the secret of a lease directory is lost.
func (c Config) lost(err error) error {
	if c.ownFile() && errors.Is(err, fs.ErrNotExist) {
		return &lease.Error{Err: err, Fix: "put the file back; if it is lost, write another one " +
			"(openssl rand -hex 16), and then run traceflake lease rekey"}
	}
	return err
}

// secretFile returns the path of the secret file, or "" if none is configured.
func (c Config) secretFile() string {
	if c.ownFile() {
		return filepath.Join(c.directory(), "secret")
	}
	return c.SecretFile
}

// source says where the secrets are configured.
func (c Config) source() string {
	switch {
	case c.Secrets != nil:
		return secretVar
	case c.SecretFile != "":
		return fileVar
	}
	return storeVar
}

// createSecret writes a new secret to a file, unless the file exists. The file is complete under
// every name that it ever has, except that of a temporary file.
func createSecret(path string) error {
	secret := make([]byte, 16)
	entropy.Read(secret)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = fmt.Fprintf(f, "%x\n", secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = link(f.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return syncDirectory(path)
	}
	// the file system has no links
	if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) {
		return cmp.Or(os.Rename(f.Name(), path), syncDirectory(path))
	}
	return err
}

// link is replaced by a test.
var link = os.Link

// syncDirectory makes the name of a file durable: a store must not survive its secret.
func syncDirectory(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil || runtime.GOOS == "windows" { // which cannot sync directories
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fileTime is how long reading or writing a secret file may take.
const fileTime = 3 * time.Second

// limited calls a function that uses a secret file, which may hang.
func limited[T any](path string, call func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), fileTime, fmt.Errorf(
		"%s was not read within %s: it must be a file on a file system that answers, not a FIFO "+
			"without a writer", path, fileTime))
	defer cancel()
	return await.Call(ctx, 0, func(context.Context) (T, error) { return call() })
}

// readKeyring is LoadKeyring without the report.
func readKeyring(path string) (*randflake.Keyring, error) {
	text, err := limited(path, func() ([]byte, error) { return readSecrets(path) })
	if err != nil {
		return nil, driver.Diagnose(err)
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, &lease.Error{Err: fmt.Errorf("%s: %w", path, err),
			Fix: "correct that line of the file"}
	}
	return k, nil
}

func readSecrets(path string) ([]byte, error) {
	const most = 1 << 20 // bytes; a device may have no end
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s contains more than 1 MiB, so it is not a secret file", path)
	}
	return text, err
}
