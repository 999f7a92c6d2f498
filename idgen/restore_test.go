//go:build linux && (amd64 || arm64)

package idgen

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
)

// machine is a file that stands in for the device that reports restores.
type machine struct {
	t    *testing.T
	file *os.File
	page [4096]byte
}

func newMachine(t *testing.T) (*machine, Option) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vmclock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	m := &machine{t: t, file: f}
	binary.LittleEndian.PutUint32(m.page[0:], 0x4b4c4356)
	binary.LittleEndian.PutUint32(m.page[4:], uint32(len(m.page)))
	binary.LittleEndian.PutUint16(m.page[8:], 1)
	binary.LittleEndian.PutUint64(m.page[24:], 1<<8)
	m.write()
	clock, err := vmclock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return m, optionFunc(func(c config) config {
		c.machine = clock
		return c
	})
}

func (m *machine) write() {
	if _, err := m.file.WriteAt(m.page[:], 0); err != nil {
		m.t.Error(err)
	}
}

func (m *machine) add(at int) {
	binary.LittleEndian.PutUint32(m.page[at:], binary.LittleEndian.Uint32(m.page[at:])+1)
	m.write()
}

// begin and end delimit an update in which the machine was restored.
func (m *machine) begin()   { m.add(12); m.add(16); m.add(104) }
func (m *machine) end()     { m.add(12) }
func (m *machine) restore() { m.begin(); m.end() }

// The machine's generation at the start does not count as a restore.
func TestFirstMachine(t *testing.T) {
	r := collectReports(t)
	m, onMachine := newMachine(t)
	m.restore()
	g := New(onMachine)
	if g.NewIDs(t.Context()); g.counts.restores.Load() != 0 || len(r.errs) != 0 {
		t.Errorf("%d restores, %v", g.counts.restores.Load(), r.errs)
	}
}

func idOf(b []byte) randflake.ID { return randflake.ID(binary.BigEndian.Uint64(b)) }

// A clone continues with the machine's memory: it would make the same IDs as the original. After
// the restore none of them is handed out.
func TestRestoredMachine(t *testing.T) {
	r := collectReports(t)
	reader := metric.NewManualReader()
	m, onMachine := newMachine(t)
	g := New(onMachine, WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	other := processor(t, g)
	makers := map[string]func() []randflake.ID{
		"NewIDs": func() []randflake.ID {
			id, span := g.NewIDs(t.Context())
			return []randflake.ID{idOf(id[8:]), idOf(span[:])}
		},
		"NewSpanID": func() []randflake.ID {
			span := g.NewSpanID(t.Context(), trace.TraceID{})
			return []randflake.ID{idOf(span[:])}
		},
		"NewTraceIDAt": func() []randflake.ID {
			id, err := g.NewTraceIDAt(time.Now())
			if err != nil {
				t.Error(err)
			}
			return []randflake.ID{idOf(id[8:])}
		},
	}
	restores := 0
	for name, make := range makers {
		for _, updating := range []bool{false, true} {
			// Both processors have IDs ready.
			make()
			other()
			make()
			originals := map[randflake.ID]bool{}
			here := g.shards.take(g.shards.pin())
			g.shards.put(here)
			for _, id := range here.ids[here.next:here.end] {
				originals[id] = true
			}
			other()
			there := g.shards.take(g.shards.pin())
			g.shards.put(there)
			for _, id := range there.ids[there.next:there.end] {
				originals[id] = true
			}
			if here == there || here.next == here.end || there.next == there.end {
				t.Fatal("a processor has no IDs ready: the test is meaningless")
			}
			// The original would also make these next.
			source := g.private.generator.Load()
			next := [8 * batchSize]randflake.ID{}
			if _, _, err := source.Fill(next[:]); err != nil {
				t.Fatal(err)
			}
			for _, id := range next {
				originals[id] = true
			}
			m.begin()
			if !updating {
				m.end()
			}
			for i := range 3 * batchSize {
				if i%100 == 99 {
					other()
				}
				for _, id := range make() {
					if originals[id] {
						t.Fatalf("%s, during the update %v: call %d handed out an ID from before the restore", name, updating, i)
					}
				}
			}
			if g.private.generator.Load() == source {
				t.Errorf("%s: the secret was not replaced", name)
			}
			restores++
			if updating { // an update that takes long counts, and so does its end
				restores++
				m.end()
				make()
			}
		}
	}
	if len(r.errs) != restores {
		t.Errorf("%d reports for %d restores", len(r.errs), restores)
	}
	for _, err := range r.errs {
		if !errors.Is(err, errRestored) || !strings.HasPrefix(err.Error(), "idgen: this machine was restored") {
			t.Errorf("report: %v", err)
		}
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	for _, metrics := range data.ScopeMetrics[0].Metrics {
		if metrics.Name != "traceflake.id.restores" {
			continue
		}
		p := metrics.Data.(metricdata.Sum[int64]).DataPoints[0]
		if source, _ := p.Attributes.Value("traceflake.vmclock"); p.Value != int64(restores) || source.AsString() != "generation_counter" {
			t.Errorf("metric: %d restores by %q, want %d", p.Value, source.AsString(), restores)
		}
		return
	}
	t.Error("no metric reports restores")
}

// Until the kernel is notified of the restore, it may return the same random bytes in all copies:
// so a secret drawn right after the restore is replaced, and so are the IDs made with it.
func TestSecretOfARestoreIsDrawnAgain(t *testing.T) {
	collectReports(t)
	m, onMachine := newMachine(t)
	g := New(onMachine)
	processor(t, g)
	m.restore()
	g.NewIDs(t.Context())
	secret, life := g.private.generator.Load(), g.life.Load()
	ready := g.shards.take(g.shards.pin())
	old := slices.Clone(ready.ids[ready.next:ready.end])
	g.shards.put(ready)
	for start := time.Now(); g.life.Load() == life; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 20*redrawAfter {
			t.Fatalf("IDs made right after the restore are still in use after %s", 20*redrawAfter)
		}
	}
	if g.private.generator.Load() == secret {
		t.Error("the secret was not replaced")
	}
	for range batchSize {
		if id := g.NewSpanID(t.Context(), trace.TraceID{}); slices.Contains(old, idOf(id[:])) {
			t.Fatal("an ID of the first secret was handed out")
		}
	}
}

// A clone made in the middle of a fill does not use the filled IDs.
func TestRestoredDuringTheFill(t *testing.T) {
	collectReports(t)
	m, onMachine := newMachine(t)
	clock := &handClock{ms: someMillis}
	s := &hooked{private: newPrivate(clock)}
	g := New(onMachine, WithSource(s), WithClock(clock))
	fills := 0
	s.filled = func() {
		if fills++; fills == 1 {
			m.restore()
		}
	}
	if g.NewIDs(t.Context()); fills != 2 {
		t.Errorf("%d fills, want 2", fills)
	}
}

// tagged is a source whose IDs begin with the life of the machine.
type tagged struct{ life, n atomic.Uint64 }

func (s *tagged) Fill(dst []randflake.ID) (int, time.Time, error) {
	life := s.life.Load()
	for i := range dst {
		dst[i] = randflake.ID(life<<32 | s.n.Add(1))
	}
	return len(dst), time.Now().Truncate(time.Second), nil
}

// Many goroutines on all processors, and one restore after another: each call after a restore
// returns an ID that was made after it.
func TestRestoresAndManyGoroutines(t *testing.T) {
	collectReports(t)
	m, onMachine := newMachine(t)
	s := &tagged{}
	s.life.Store(1)
	g := New(onMachine, WithSource(s))
	var restored atomic.Uint64 // the life that every goroutine must have noticed
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for !stop.Load() {
				least := restored.Load()
				var id randflake.ID
				if w%2 == 0 {
					traceID, span := g.NewIDs(t.Context())
					id = min(idOf(traceID[8:]), idOf(span[:]))
				} else {
					span := g.NewSpanID(t.Context(), trace.TraceID{})
					id = idOf(span[:])
				}
				if got := uint64(id >> 32); got < least {
					t.Errorf("an ID of life %d was handed out in life %d", got, least)
					return
				}
			}
		})
	}
	for life := uint64(2); life < 500; life++ {
		s.life.Store(life)
		m.restore()
		restored.Store(life)
		if life%16 == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	stop.Store(true)
	wg.Wait()
	if n := g.Fallbacks(); n > 0 {
		t.Logf("%d fallbacks", n)
	}
}
