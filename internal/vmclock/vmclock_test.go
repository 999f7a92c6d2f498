package vmclock

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without a page, the generation is constant and the status has the reason. The device is the
// default.
func TestOff(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "vmclock0"), os.DevNull, ""} {
		t.Setenv(PathVariable, path)
		m := open()
		signal, err := m.Status()
		if off := err != nil; off != (signal == Off) || !off && path != "" || off &&
			(m.Generation() != 0 ||
				!strings.HasPrefix(err.Error(), "vmclock: ") ||
				!strings.Contains(err.Error(), cmp.Or(path, Device))) {
			t.Errorf("%q: %v, %v, generation %d", path, signal, err, m.Generation())
		}
	}
}
