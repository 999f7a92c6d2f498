package entropy

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/cpu"
)

// copied returns the source of a copy of a machine: everything repeats itself.
func copied() *Source {
	return &Source{
		Kernel:    func(b []byte) { clear(b) },
		Processor: func() [4]uint64 { return [4]uint64{} },
		Page:      func() []byte { return make([]byte, 112) },
		Now:       func() time.Time { return time.Unix(1_800_000_000, 0) },
		Elapsed:   func() time.Duration { return time.Hour },
		Ticks:     func() uint64 { return 1 << 40 },
		PID:       7,
	}
}

func draw(s *Source) string {
	b := make([]byte, 16)
	s.Read(b)
	return string(b)
}

// If any single input differs, the next draws of copies differ: nothing that copies share is used
// without fresh inputs. If no input differs, draws are equal, as the package documentation says.
func TestEachInputParts(t *testing.T) {
	running := func() *Source {
		s := copied()
		draw(s)
		return s
	}
	first := draw(running())
	if again := draw(running()); again != first {
		t.Fatalf("%x, then %x: the test does not control all inputs", first, again)
	}
	seen := map[string]string{first: "nothing"}
	for name, change := range map[string]func(*Source){
		"the kernel": func(s *Source) {
			s.Kernel = func(b []byte) { clear(b); b[31] = 1 }
		},
		"the first random word": func(s *Source) {
			s.Processor = func() [4]uint64 { return [4]uint64{1} }
		},
		"the last random word": func(s *Source) {
			s.Processor = func() [4]uint64 { return [4]uint64{3: 1} }
		},
		"the vmclock page": func(s *Source) {
			s.Page = func() []byte { return bytes.Repeat([]byte{1}, 112) }
		},
		"no page": func(s *Source) { s.Page = func() []byte { return nil } },
		"a nanosecond": func(s *Source) {
			s.Now = func() time.Time { return time.Unix(1_800_000_000, 1) }
		},
		"a monotonic nanosecond": func(s *Source) {
			s.Elapsed = func() time.Duration { return time.Hour + 1 }
		},
		"a tick":          func(s *Source) { s.Ticks = func() uint64 { return 1<<40 + 1 } },
		"the process":     func(s *Source) { s.PID = 8 },
		"an earlier draw": func(s *Source) { draw(s) },
	} {
		s := running()
		change(s)
		got := draw(s)
		if other, equal := seen[got]; equal {
			t.Errorf("%s draws what %s draws", name, other)
		}
		seen[got] = name
	}
}

// The kernel's bytes are read anew, 256 bits for each draw, and a long draw is not
// a repeated short one.
func TestRead(t *testing.T) {
	asked := 0
	s := copied()
	s.Kernel = func(b []byte) { asked += len(b) }
	long := make([]byte, 255*sha256.Size)
	s.Read(long)
	blocks := map[string]bool{}
	for b := range slices.Chunk(long, sha256.Size) {
		blocks[string(b)] = true
	}
	if asked != 32 || len(blocks) != 255 {
		t.Errorf("%d bytes of the kernel's were used, want 32; %d blocks differ, want 255", asked,
			len(blocks))
	}
}

// This machine's inputs are alive: with a kernel that repeats itself, draws differ.
func TestThisMachine(t *testing.T) {
	a, b := NewSource(), NewSource()
	a.Kernel = func(b []byte) { clear(b) }
	b.Kernel = a.Kernel
	var some, more [16]byte
	Read(some[:])
	Read(more[:])
	if draw(a) == draw(b) || some == more || some == [16]byte{} {
		t.Errorf("two draws of this machine are equal: %x, %x", some, more)
	}
	if assembly := ticks() != 0; assembly && cpu.X86.HasRDRAND && random() == [4]uint64{} {
		t.Error("the processor's random words are 0")
	}
}
