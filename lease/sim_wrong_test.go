package lease_test

import "testing"

// variant is a mistake in the code or of a server, and the faults by which a world shows it. The
// zero variant is the production code.
type variant struct {
	name  string
	shows func(*world)
}

func (w *world) wrong(name string) bool { return w.variant.name == name }

// wrongVariants must all be caught. A rule that one package keeps has its wrong variants there: see
// the tests of the engine, of term.meaning and of randflake's generator.
var wrongVariants = []variant{
	{name: "inclusive end"},
	{name: "a store that forgets acknowledged writes"},
	{name: "writes without a condition"},
	{name: "assuming the requested end"},
	{"adopting anybody's renewal", clones},
	{"a repeated Acquire is used at once", clones},
	{"a restored machine continues", restores},
	{"nonces of the kernel alone", clones},
	{"nonces drawn at once after a restore", restores},
	{"a place that stays", moves},
	{"a description from a replica", func(w *world) {
		moves(w)
		w.compares = false
	}},
}

func clones(w *world)   { w.vmclock, w.images = false, true }
func restores(w *world) { w.vmclock = true }
func moves(w *world)    { w.moves, w.setsBack = true, false }

// TestSimulationCatches proves that the simulator finds each wrong variant.
func TestSimulationCatches(t *testing.T) {
	if testing.Short() || raced() {
		t.Skip("it tests the simulator, whose coroutines run one at a time")
	}
	for _, v := range wrongVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 100; seed++ {
				if w := simulate(seed, v); w.failed != "" {
					t.Logf("caught by seed %d: %s", seed, w.failed)
					return
				}
			}
			t.Error("100 seeds did not catch it")
		})
	}
}
