package filestore

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// SlowSyncs makes each sync of a directory take longer, in stores that are opened until the test
// ends, until mend is called.
func SlowSyncs(t *testing.T, by time.Duration) (mend func()) {
	var mended atomic.Bool
	sync := system.syncNames
	t.Cleanup(func() { system.syncNames = sync })
	system.syncNames = func(root *os.Root, names ...string) error {
		if !mended.Load() {
			time.Sleep(by)
		}
		return sync(root, names...)
	}
	return func() { mended.Store(true) }
}
