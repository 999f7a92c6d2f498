//go:build linux && (amd64 || arm64)

package idgen

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
)

// machine is a file that stands in for the device that reports restores. Its offsets are those of
// Linux, which package vmclock must read.
type machine struct {
	t               *testing.T
	file            *os.File
	seq, generation uint32
}

func newMachine(t *testing.T) (*machine, Option) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "vmclock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	m := &machine{t: t, file: f, generation: 1000}
	// it has a generation
	for offset, n := range map[int64]uint32{0: 0x4b4c4356, 4: 4096, 8: 1, 24: 1 << 8, 4092: 0} {
		m.write(offset, n)
	}
	m.restore()
	opened, err := vmclock.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return m, func(c *config) { c.machine = opened }
}

func (m *machine) write(offset int64, n uint32) {
	if _, err := m.file.WriteAt(binary.LittleEndian.AppendUint32(nil, n), offset); err != nil {
		m.t.Error(err)
	}
}

// begin and end delimit an update in which the machine was restored.
func (m *machine) begin() {
	m.seq, m.generation = m.seq+1, m.generation+1
	m.write(12, m.seq)
	m.write(104, m.generation)
}

func (m *machine) end() {
	m.seq++
	m.write(12, m.seq)
}

func (m *machine) restore() { m.begin(); m.end() }

// A copy continues with the machine's memory: it would generate the same IDs as the original. After
// a restore none of them is handed out, on no processor and by no method; also while the hypervisor
// still writes the page, and if the generation falls. Each restore is reported and counted once;
// the generation at the start is none.
func TestRestoredMachine(t *testing.T) {
	errs := reportstest.Collect(t)
	reader := metric.NewManualReader()
	m, onMachine := newMachine(t)
	c := newClock(noon)
	s := &tagged{clock: c.time}
	// the generator does not see the source's generation
	g := c.generator(onMachine, WithSource(sourceFunc(s.Fill)),
		WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	other := onOne(t, g)
	check := func() {
		t.Helper()
		_, low, span := idsOf(g)
		old, err := g.NewTraceIDAt(noon)
		for i, id := range []randflake.ID{low, span, spanOf(g), idOf(old[8:])} {
			if uint64(id>>32) != s.generation.Load() || err != nil {
				t.Fatalf("%d: %s is from before the restore, %v", i, id, err)
			}
		}
	}
	const series = "traceflake.id.restores {restore} traceflake.vmclock=generation_counter"
	restores := 0
	for _, update := range []func(){
		m.restore, func() { m.generation -= 100; m.restore() },
		m.begin, m.end, // an update that takes long counts, and so does its end
	} {
		for range 2 { // both processors have IDs ready
			check()
			other()
		}
		s.generation.Add(1)
		update()
		restores++
		reads := c.reads
		for i := range maxBatch {
			if check(); i%100 == 99 {
				other()
			}
		}
		if c.reads-reads > 10 && m.seq%2 == 0 {
			t.Errorf("the clock was read %d times after a restore", c.reads-reads)
		}
		got := metrictest.Collect(t, reader)[series]
		if reports := errs(); got != float64(restores) || len(reports) != restores ||
			!errors.Is(reports[restores-1], errRestored) {
			t.Errorf("%v restores in the metric, want %d; reported: %v", got, restores, reports)
		}
	}
}

// Many goroutines on all processors, and one restore after another: each call after a restore
// returns an ID generated after it.
func TestRestoresAndManyGoroutines(t *testing.T) {
	reportstest.Collect(t)
	m, onMachine := newMachine(t)
	s := &tagged{clock: time.Now}
	g := New(onMachine, WithSource(sourceFunc(s.Fill))) // the generator does not see the generation
	// the life that every goroutine must have noticed
	var restored atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for !stop.Load() {
				least := restored.Load()
				id := spanOf(g)
				if w%2 == 0 {
					_, low, span := idsOf(g)
					id = min(low, span)
				}
				// a random ID is no failure
				if got := uint64(id >> 32); got < least && id>>48 == 0 {
					t.Errorf("an ID of life %d was handed out in life %d", got, least)
					return
				}
			}
		})
	}
	for life := uint64(2); life < 500; life++ {
		s.generation.Store(life)
		m.restore()
		restored.Store(life)
		if life%16 == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	stop.Store(true)
	wg.Wait()
	if n := g.eras.restores.Load(); n > 498 {
		t.Errorf("%d restores are counted, there were 498", n)
	}
}

// A restore while New draws its secret is noticed: the secret may be of the original.
func TestRestoredDuringNew(t *testing.T) {
	reportstest.Collect(t)
	m, onMachine := newMachine(t)
	draws := 0
	g := New(onMachine, func(cfg *config) {
		cfg.entropy = func(b []byte) {
			if draws++; draws == 2 { // the mask, and now the secret
				m.restore()
			}
			b[0] = byte(draws)
		}
	})
	before := draws
	spanOf(g)
	if g.eras.restores.Load() != 1 || draws < before+2 {
		t.Errorf("%d restores, %d draws after New", g.eras.restores.Load(), draws-before)
	}
}
