package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrNotInstalled is returned if an engine is neither installed nor given by a DSN.
var ErrNotInstalled = errors.New("engine is not installed")

// engineFile finds one fetched file by its pattern below node_modules.
func engineFile(engine, pattern, variable string) (string, error) {
	folder, err := engineFolder()
	if err != nil {
		return "", fmt.Errorf("servers: %s: %w: %w", engine, ErrNotInstalled, err)
	}
	found, err := filepath.Glob(filepath.Join(folder, "node_modules", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("servers: %s: %w: run `make engines` (needs Node and npm), or set %s to a server's DSN",
			engine, ErrNotInstalled, variable)
	}
	return filepath.Abs(found[0])
}

// engineFolder is $TRACEFLAKE_ENGINES, or .cache/engines beside the go.work
// above the working directory.
func engineFolder() (string, error) {
	if folder := os.Getenv("TRACEFLAKE_ENGINES"); folder != "" {
		return folder, nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return filepath.Join(dir, ".cache", "engines"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work above %s: run inside the repository, or set TRACEFLAKE_ENGINES", wd)
		}
	}
}

// dataFolder makes an empty folder below os.TempDir and returns it with its
// lock, which is held until the process ends. Folders that a killed process
// left behind have no holder; they are removed first.
func dataFolder(prefix string) (dir string, lock *os.File, err error) {
	stale, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, old := range stale {
		removeIfStale(old)
	}
	dir, err = os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, fmt.Errorf("servers: data folder: %w (TMPDIR names another place)", err)
	}
	lock, err = os.Create(filepath.Join(dir, "lock"))
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("servers: data folder: %w (TMPDIR names another place)", err)
	}
	return dir, lock, nil
}

func removeIfStale(dir string) {
	info, err := os.Stat(dir)
	if err != nil || time.Since(info.ModTime()) < time.Minute {
		return // perhaps just made and not locked yet
	}
	lock, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.RemoveAll(dir)
	}
}
