package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/traceflake/traceflake/randflake"
)

// LoadKeyring reads the secrets in a file; see [randflake.ParseKeyring] for the format. Errors
// name the file and the line, never the content.
func LoadKeyring(path string) (*randflake.Keyring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	k, err := randflake.ParseKeyring(f)
	var pathErr *fs.PathError
	if err != nil && !errors.As(err, &pathErr) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, err
}
