package filestore

import (
	"os"
	"testing"
)

// HangSyncs makes each sync of a directory wait until mend is called, in stores that are opened
// until the test ends.
func HangSyncs(t *testing.T) (mend func()) {
	mended, sync := make(chan struct{}), system.syncNames
	t.Cleanup(func() { system.syncNames = sync })
	system.syncNames = func(root *os.Root, names ...string) error {
		<-mended
		return sync(root, names...)
	}
	return func() { close(mended) }
}
