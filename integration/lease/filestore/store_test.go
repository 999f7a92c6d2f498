//go:build unix

package filestore

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/integration/lease/processes"
)

// Processes of one host. While the store is unreachable another process locks the directory.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	processes.Run(t, func(during func()) error {
		dir, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
			return err
		}
		during()
		return dir.Close()
	}, "file:"+path)
}
