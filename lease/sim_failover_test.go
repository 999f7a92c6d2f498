package lease_test

import (
	"testing"
	"time"
)

// calmly returns a world of six processes, without other faults than f causes, whose clocks agree.
func calmly(seed uint64, name string, f func(*world)) *world {
	w := newWorld(seed, variant{name, func(w *world) {
		w.calm, w.faults = true, func() {
			for {
				w.sleep(4 * w.ttl)
				f(w)
			}
		}
	}})
	defer w.end()
	for _, h := range w.hosts {
		h.skew = 0
	}
	for len(w.processes) < 6 {
		w.start(w.hosts[0])
	}
	w.run(20 * w.ttl)
	return w
}

// replace kills some processes and starts others, which lease what the store has forgotten.
func (w *world) replace() {
	for _, p := range w.processes {
		if p.runs() && w.rng.IntN(3) == 0 {
			p.kill()
			w.start(p.host)
		}
	}
}

// Servers that lose acknowledged writes while processes generate IDs. If the place changes, no IDs
// are equal, also while the old server serves others, and whoever starts. If it does not, the
// running processes find out before they lease anything anew, so no IDs are equal as long as no
// process starts, or is about to switch to the history that the server shows. Otherwise equal IDs
// are generated for one lease time at most.
func TestServersThatForget(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() || raced() {
		seeds = 3 // too few for equal IDs in each case
	}
	for name, c := range map[string]struct {
		variant string
		happens func(*world)
		equal   bool
	}{
		"a failover": {"", func(w *world) {
			w.failOver()
			w.replace()
		}, false},
		"a set-back at its place": {"", func(w *world) { w.hosts[0].server.setBack() }, false},
		"a set-back at its place, and processes start": {"", func(w *world) {
			w.hosts[0].server.setBack()
			w.replace()
		}, true},
		"a set-back, without a new history": {"a history that forgot goes on",
			func(w *world) { w.hosts[0].server.setBack() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, equal, latest := 0, 0, time.Duration(0)
			for seed := uint64(1); seed <= seeds; seed++ {
				w := calmly(seed, c.variant, c.happens)
				if w.failed != "" {
					t.Fatalf("seed %d: %s", seed, w.failed)
				}
				made, equal = made+w.ledger.made, equal+len(w.ledger.equal)
				for _, at := range w.ledger.equal {
					after := at % (4 * w.ttl)
					latest = max(latest, after)
					// A block may be used a second longer, which is borrowed.
					if after > w.ttl+2*time.Second {
						t.Errorf("seed %d: equal IDs %s after the store forgot, with leases of %s",
							seed, after, w.ttl)
					}
				}
			}
			t.Logf("%d IDs, %d batches with equal ones, the last of them after %s", made, equal,
				latest)
			if equal > 0 && !c.equal || equal == 0 && c.equal && seeds > 3 {
				t.Errorf("%d batches of %d IDs have equal ones, want any: %v", equal, made, c.equal)
			}
		})
	}
}
