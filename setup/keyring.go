package setup

import (
	"fmt"
	"os"
	"runtime"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/randflake"
)

// LoadKeyring reads the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// contain the path and the line number, never the content. A file that every user of the machine
// can read is reported to [otel.Handle].
func LoadKeyring(path string) (*randflake.Keyring, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" {
		otel.Handle(fmt.Errorf("setup: every user of this machine can read the secret in %s (mode %04o): "+
			"run chmod o= on it; in Kubernetes, set the volume's defaultMode to 0440", path, info.Mode().Perm()))
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}
