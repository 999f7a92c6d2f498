package vmclock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without a source, the clock is constant and returns the reason.
func TestOff(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "vmclock0"), os.DevNull} {
		t.Setenv(PathVariable, path)
		c := open()
		source, err := c.Status()
		if source != Off || err == nil || !strings.HasPrefix(err.Error(), "vmclock: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, source, err)
		}
		if got := c.Generation(); got != 0 {
			t.Errorf("%s: generation %d", path, got)
		}
		if c, err := Open(path); c != nil || err == nil {
			t.Errorf("%s: Open returned %v, %v", path, c, err)
		}
	}
}

func TestTheDeviceIsTheDefault(t *testing.T) {
	t.Setenv(PathVariable, "")
	switch source, err := open().Status(); {
	case err == nil && source == Off:
		t.Error("off without a reason")
	case err != nil && !strings.Contains(err.Error(), Device):
		t.Errorf("%v does not name %s", err, Device)
	}
}
