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

// LoadSecrets returns the secrets of the configuration: Secrets, or those of SecretFile or of a
// lease directory. They are for deterministic IDs; [Keys] returns the keys of leased IDs. Errors:
// [ErrConfig] if none are set, and those of [LoadKeyring].
func (c Config) LoadSecrets() (*randflake.Keyring, error) {
	file, variable := c.SecretFile, fileVar
	switch {
	case c.Secrets != nil:
		return c.Secrets, nil
	case c.ownSecret():
		file, variable = filepath.Join(c.directory(), "secret"), storeVar
	case file == "":
		return nil, fmt.Errorf("%w: %s=%s: set %s or %s to the secret that `traceflake lease "+
			"create` wrote", ErrConfig, storeVar, redact.Address(c.Store), fileVar, secretVar)
	}
	k, err := LoadKeyring(file)
	if err != nil {
		return nil, fmt.Errorf("fleet: %s: %w", variable, err)
	}
	return k, nil
}

// directory returns the path of a lease directory, or "".
func (c Config) directory() string {
	path, ok := strings.CutPrefix(c.Store, "file:")
	if !ok {
		return ""
	}
	return path
}

// ownSecret reports whether the secret is that of a lease directory.
func (c Config) ownSecret() bool {
	return c.Secrets == nil && c.SecretFile == "" && c.directory() != ""
}

// readTime is how long a secret file may take to read.
const readTime = 3 * time.Second

// readKeyring is LoadKeyring without the report.
func readKeyring(path string) (*randflake.Keyring, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), readTime, fmt.Errorf(
		"%s was not read within %s: it must be a file on a file system that answers, not a FIFO "+
			"without a writer", path, readTime))
	defer cancel()
	text, err := await.Call(ctx, 0, func(context.Context) ([]byte, error) {
		return readSecrets(path)
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
