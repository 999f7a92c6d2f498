package settings

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/randflake"
)

// LoadKeyring returns the secrets in a file, as [ReadKeyring] does. A file that every user of the
// machine can read is reported to [otel.Handle].
func LoadKeyring(path string) (*randflake.Keyring, error) {
	k, err := ReadKeyring(path)
	if err != nil {
		return nil, err
	}
	if err := CheckSecretFile(path); err != nil {
		otel.Handle(fmt.Errorf("fleet: %w: run chmod o= on it; in Kubernetes, set the volume's "+
			"defaultMode to 0440", err))
	}
	return k, nil
}

// CheckSecretFile returns an error if every user of this machine can read the file.
func CheckSecretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 ||
		runtime.GOOS == "windows" {
		return err
	}
	return fmt.Errorf("every user of this machine can read the secret in %s (mode %04o)", path,
		info.Mode().Perm())
}

// ReadKeyring returns the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content.
func ReadKeyring(path string) (*randflake.Keyring, error) {
	const most = 1 << 20 // bytes; a device may have no end
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s contains more than 1 MiB, so it is not a secret file", path)
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}
