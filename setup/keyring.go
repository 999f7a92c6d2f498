package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/randflake"
)

// LoadKeyring reads the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content. A file that every user of the machine
// can read is reported to [otel.Handle].
func LoadKeyring(path string) (*randflake.Keyring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reportReadable(f)
	k, err := randflake.ParseKeyring(f)
	var pathErr *fs.PathError
	if err != nil && !errors.As(err, &pathErr) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, err
}

func reportReadable(f *os.File) {
	const others = 0o004
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&others == 0 || runtime.GOOS == "windows" {
		return
	}
	otel.Handle(fmt.Errorf("setup: every user of this machine can read the secret in %s (mode %04o): "+
		"run chmod o= on it; in Kubernetes, set the volume's defaultMode to 0440", f.Name(), info.Mode().Perm()))
}
