package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// ErrNotInstalled is returned if an engine is neither installed nor given by a DSN.
var ErrNotInstalled = errors.New("engine is not installed")

// engineFile finds one fetched file by its pattern below node_modules of $TRACEFLAKE_ENGINES, or of
// .cache/engines in the repository.
func engineFile(engine, pattern, variable string) (string, error) {
	folder := os.Getenv("TRACEFLAKE_ENGINES")
	if folder == "" {
		root, err := child.Repository()
		if err != nil {
			return "", fmt.Errorf("servers: %s: %w: %w, or set TRACEFLAKE_ENGINES", engine, ErrNotInstalled, err)
		}
		folder = filepath.Join(root, ".cache", "engines")
	}
	found, err := filepath.Glob(filepath.Join(folder, "node_modules", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("servers: %s: %w: run `make engines` (needs Node and npm), or set %s to a server's DSN",
			engine, ErrNotInstalled, variable)
	}
	return filepath.Abs(found[0])
}

// dataFolder creates an empty folder below os.TempDir, which is locked until this process ends. It
// first removes those that killed processes left behind, which nobody has locked.
func dataFolder(prefix string) (string, error) {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range old {
		// One of the last minute may not be locked yet.
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Minute && lock(dir) == nil {
			_ = os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp("", prefix)
	if err == nil {
		err = lock(dir)
	}
	if err != nil {
		err = fmt.Errorf("servers: data folder: %w (TMPDIR names another place)", err)
	}
	return dir, err
}

// lock locks a folder until this process ends.
func lock(dir string) error {
	fd, err := syscall.Open(filepath.Join(dir, "lock"), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
	}
	return err
}
