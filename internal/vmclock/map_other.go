//go:build !(linux && (amd64 || arm64))

package vmclock

import (
	"errors"
	"fmt"
	"runtime"
)

func mapPage(path string) (*page, error) {
	return nil, fmt.Errorf("%s is not supported on %s/%s: %w", path, runtime.GOOS, runtime.GOARCH,
		errors.ErrUnsupported)
}
