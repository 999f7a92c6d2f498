package entropy

import (
	"crypto/sha256"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"
)

func draw(in *inputs, change func(in *inputs)) string {
	b, changed := make([]byte, 16), *in
	change(&changed)
	changed.read(b)
	return string(b)
}

// Copies of a machine in which everything repeats itself draw the same, unless a single input
// differs.
func TestEachInputCounts(t *testing.T) {
	in := current()
	seen := map[string]string{}
	for name, change := range map[string]func(in *inputs){
		"nothing":                func(*inputs) {},
		"the kernel":             func(in *inputs) { in.kernel[31]++ },
		"the first random word":  func(in *inputs) { in.processor[0]++ },
		"the last random word":   func(in *inputs) { in.processor[3]++ },
		"the vmclock page":       func(in *inputs) { in.page[13]++ },
		"a nanosecond":           func(in *inputs) { in.wall++ },
		"a monotonic nanosecond": func(in *inputs) { in.elapsed++ },
		"a tick":                 func(in *inputs) { in.ticks++ },
		"the process":            func(in *inputs) { in.pid++ },
		"an earlier draw":        func(in *inputs) { in.draw++ },
	} {
		got := draw(in, change)
		if other, equal := seen[got]; equal || draw(in, change) != got {
			t.Errorf("%s draws what %s draws, or not the same again", name, other)
		}
		seen[got] = name
	}
}

// Every input of this machine that moves is read anew for each draw. A long draw is not a repeated
// short one.
func TestThisMachine(t *testing.T) {
	a, b := current(), current()
	for a.wall == b.wall || a.elapsed == b.elapsed { // some clocks are coarse
		b = current()
	}
	if a.kernel == b.kernel || a.draw == b.draw ||
		a.pid != b.pid || a.pid == 0 || ticks() != 0 && (a.ticks == b.ticks ||
		cpu.X86.HasRDRAND && a.processor == b.processor) {
		t.Errorf("two draws have inputs in common:\n%+v\n%+v", a, b)
	}
	long := make([]byte, 255*sha256.Size)
	Read(long)
	blocks := map[string]bool{}
	for b := range slices.Chunk(long, sha256.Size) {
		blocks[string(b)] = true
	}
	if len(blocks) != 255 {
		t.Errorf("%d blocks differ, want 255", len(blocks))
	}
}
