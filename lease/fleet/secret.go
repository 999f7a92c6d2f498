package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/await"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// ErrNoSecret is returned if no secret is configured. It wraps [ErrConfig].
var ErrNoSecret error = &lease.Error{Err: fmt.Errorf("%w: no secret", ErrConfig),
	Fix: "set " + fileVar + " (or --secret-file) or " + secretVar + " to the secret that " +
		"`traceflake lease create` wrote"}

// readTime is how long a secret file may take to read.
const readTime = 3 * time.Second

// longest is the size of the largest secret file.
const longest = 1 << 20

// LoadKeyring returns the secrets in a file of at most 1 MiB; see [randflake.ParseKeyring] for the
// format. Errors contain the path and the line number, never the content. It waits for three
// seconds at most: a file may be a FIFO, or on a file system that does not answer. A file that
// every user of the machine can read is reported to otel.Handle.
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

// readKeyring is LoadKeyring without the report.
func readKeyring(path string) (*randflake.Keyring, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), readTime, fmt.Errorf(
		"%s was not read within %s: it must be a file on a file system that answers, not a FIFO "+
			"without a writer", path, readTime))
	defer cancel()
	text, err := await.Call(ctx, 0, func(context.Context) ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		text, err := io.ReadAll(io.LimitReader(f, longest+1)) // a device may have no end
		if len(text) > longest {
			return nil, fmt.Errorf("%s is longer than 1 MiB: name a file of secrets", path)
		}
		return text, err
	})
	if _, secret := randflake.ParseKeyring(path); err != nil && secret == nil {
		return nil, &lease.Error{Err: errors.New("the value is a secret, not the path of a file"),
			Fix: "set it as " + secretVar + ", or the path of its file here"}
	}
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

// LoadSecrets returns the secrets of the configuration: Secrets, or those of SecretFile or of a
// lease directory. They are for deterministic IDs; [Keys] returns the keys of leased IDs. Errors:
// [ErrNoSecret], and those of [LoadKeyring].
func (c Config) LoadSecrets() (*randflake.Keyring, error) { return c.loadSecrets(LoadKeyring) }

func (c Config) loadSecrets(load func(path string) (*randflake.Keyring, error)) (
	*randflake.Keyring, error) {
	file, variable := c.SecretFile, fileVar
	switch {
	case c.Secrets != nil:
		return c.Secrets, nil
	case c.OwnSecret():
		file, variable = filepath.Join(c.Directory(), "secret"), storeVar
	case file == "":
		return nil, ErrNoSecret
	}
	k, err := load(file)
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", variable, err)
	}
	return k, nil
}

// Directory returns the path of a lease directory, or "" for another store.
func (c Config) Directory() string {
	if path, ok := strings.CutPrefix(c.Store, "file:"); ok {
		return path
	}
	return ""
}

// OwnSecret reports whether the secret is that of a lease directory.
func (c Config) OwnSecret() bool {
	return c.Secrets == nil && c.SecretFile == "" && c.Directory() != ""
}
