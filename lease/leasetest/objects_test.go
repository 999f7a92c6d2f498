package leasetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
)

// fake is a server in memory, which every client shares.
type fake struct {
	*memstore.Objects
	gate, answers  chan struct{}                 // each has an element while messages pass
	replica, given sync.Map                      // name → what was before; what Write was given
	lent           sync.Map                      // version → data that Read returned
	closed         atomic.Bool                   // a client was
	cut            atomic.Pointer[chan struct{}] // closed while connections are cut
	cutAt          atomic.Int64                  // in Unix time
	gaveUp         atomic.Bool
	mu             sync.Mutex
	numbers        map[string]int // of the writes of an object since it was created
}

// flawed is a client of it.
type flawed struct {
	*fake
	flaw string
	used *atomic.Bool
	old  *sync.Map // name → what the client read or wrote last
}

// errCut is returned while connections are cut.
var errCut = errors.New("connection refused")

// broken returns errCut, or what a flawed client makes of it.
func (f flawed) broken() error {
	switch f.flaw {
	case "every error is permanent":
		return fmt.Errorf("%w: %w", lease.ErrMisconfigured, errCut)
	case "takes an outage for a conflict":
		return driver.ErrChanged
	case "gives up after five minutes":
		f.gaveUp.Store(time.Now().Unix()-f.cutAt.Load() > 5*60)
	}
	return errCut
}

// pass waits until messages pass. Each takes a while.
func (f flawed) pass(ctx context.Context, gate chan struct{}) error {
	f.used.Store(true)
	inFlight := ctx
	if f.flaw == "obeys a context before a request only" && ctx.Err() == nil {
		inFlight = context.Background()
	}
	cut := *f.cut.Load()
	select {
	case <-cut:
		if ctx.Err() == nil {
			return f.broken()
		}
	default:
	}
	select {
	case <-gate:
		gate <- struct{}{}
		time.Sleep(rand.N(time.Millisecond))
	case <-cut:
		return f.broken()
	case <-inFlight.Done():
	}
	switch err := ctx.Err(); {
	case f.gaveUp.Load(), f.flaw == "Close of every client" && f.closed.Load():
		return errors.New("the client is closed")
	case err != nil && f.flaw == "errors of its own":
		return errors.New("timeout")
	default:
		return err
	}
}

func (f flawed) Close() error {
	f.closed.Store(true)
	switch used := f.used.Load(); {
	case f.flaw == "Close of what is not open" && !used:
		return errors.New("it is not open")
	case f.flaw == "Close waits for the server":
		return f.pass(context.Background(), f.gate)
	case f.flaw == "Close takes a minute" && used:
		time.Sleep(time.Minute)
	}
	return nil
}

func (f flawed) Read(ctx context.Context, name string) (driver.Object, error) {
	sent := time.Now().Truncate(time.Second)
	if err := f.pass(ctx, f.gate); err != nil {
		return driver.Object{}, err
	}
	o, err := f.Objects.Read(ctx, name)
	if err := f.pass(ctx, f.answers); err != nil {
		return driver.Object{}, err
	}
	switch f.flaw {
	case "a cache in each client":
		was, _ := f.old.LoadOrStore(name, o)
		o = was.(driver.Object)
	case "a clock that stands still":
		o.Time = time.Now().Truncate(time.Hour)
	case "a clock of another zone":
		o.Time = o.Time.Add(time.Hour)
	case "a clock with fractions of a second":
		o.Time = o.Time.Add(time.Millisecond)
	case "the client's clock":
		o.Time = sent
	case "the client's clock after the response":
		o.Time = time.Now().Truncate(time.Second)
	case "no place":
		o.Place = ""
	case "a place for each object":
		o.Place = name
	case "a place that copies share":
		o.Place = "server"
	case "a place that changes":
		if name == "config" {
			o.Place = "here " + o.Version
		}
	case "hash of the length":
		o.Version = fmt.Sprint(len(o.Data))
	case "reads of a replica", "a hundredth of the reads is of a replica":
		often := 5
		if f.flaw != "reads of a replica" {
			often = 100
		}
		if was, ok := f.replica.Load(name); ok && rand.IntN(often) == 0 {
			was := was.(driver.Object)
			o.Data, o.Version = bytes.Clone(was.Data), was.Version
		}
	case "numbers that begin again", "numbers, and later ones":
		o.Version = f.number(name)
	case "other ends of lines":
		o.Data = bytes.ReplaceAll(o.Data, []byte("\r\n"), []byte("\n"))
	case "at most 16 KB":
		o.Data = o.Data[:min(len(o.Data), 16<<10)]
	case "data that it needs itself":
		lent, _ := f.lent.LoadOrStore(o.Version, o.Data)
		o.Data = lent.([]byte)
	case "data that it was given":
		if given, ok := f.given.Load(name); ok {
			o.Data = bytes.Clone(given.([]byte))
		}
	case "no error for what is missing":
		if o.Version == "" {
			o.Version = "0"
		}
	case "an error for what is missing":
		if o.Version == "" {
			err = errors.New("not found")
		}
	}
	return o, err
}

func (f flawed) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	if err := f.pass(ctx, f.gate); err != nil {
		if f.flaw == "swallowed errors" ||
			f.flaw == "swallows a cut in flight" && errors.Is(err, errCut) {
			err = nil
		}
		return driver.Object{Version: string(data)}, err
	}
	now, _ := f.Objects.Read(ctx, name)
	unchanged := now.Version == version
	switch f.flaw {
	case "a place for each object", "a place that copies share", "a place that changes":
		place = now.Place
	case "writes elsewhere, too":
		if place != now.Place {
			_, _ = f.Objects.Write(ctx, name, data, version, now.Place)
		}
	case "another error elsewhere":
		if place != now.Place {
			return now, errors.New("elsewhere")
		}
	case "refuses every write":
		return now, driver.ErrChanged
	case "numbers that begin again", "numbers, and later ones":
		number := f.number(name)
		later := f.flaw != "numbers that begin again" && len(version) > len(number)
		if unchanged = version == number || later && number != "" && version > number; unchanged {
			version = now.Version
		}
	case "no condition":
		version = now.Version
	case "hash of the length":
		if version == fmt.Sprint(len(now.Data)) {
			version = now.Version
		}
	case "yes to the same data":
		if string(now.Data) == string(data) {
			return now, nil
		}
	case "reads of a replica", "a hundredth of the reads is of a replica":
		if unchanged {
			f.replica.Store(name, now)
		}
	case "forgets a write in twenty":
		if unchanged && rand.IntN(20) == 0 {
			return driver.Object{Version: string(data)}, nil
		}
	case "looks before it creates", "compares before it writes":
		if unchanged && (version == "" || f.flaw == "compares before it writes") {
			time.Sleep(rand.N(10 * time.Millisecond)) // other writes of a history end meanwhile
			now, _ = f.Objects.Read(ctx, name)
			version = now.Version
		}
	case "other versions of its own writes":
		version = strings.TrimPrefix(version, "W/")
	}
	o, err := f.Objects.Write(ctx, name, data, version, place)
	if err != nil && f.flaw == "conflicts are other errors" {
		err = errors.New("conflict")
	}
	if err != nil {
		return o, err
	}
	switch f.flaw {
	case "numbers that begin again", "numbers, and later ones":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.numbers[name]++
		o.Version = fmt.Sprint(f.numbers[name])
	case "a cache in each client":
		f.old.Store(name, driver.Object{Data: bytes.Clone(data), Version: o.Version})
	case "data that it was given":
		f.given.Store(name, data)
	case "hash of the length":
		o.Version = fmt.Sprint(len(data))
	case "other versions of its own writes":
		o.Version = "W/" + o.Version
	case "no version of its own writes":
		o.Version = ""
	case "responds with other data":
		o.Data = []byte("{}")
	}
	return o, nil
}

// number returns how often an object was written since it was created, or "".
func (f *fake) number(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.numbers[name]; n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}

func (f flawed) Prepare(context.Context) error {
	if f.flaw == "Prepare draws another place" {
		f.Move()
	}
	return nil
}

// storages returns storages whose clients have a flaw.
func storages(flaw string) func(testing.TB) Storage {
	one := &memstore.Objects{}
	return func(testing.TB) Storage {
		f := &fake{Objects: &memstore.Objects{Clock: time.Now}, gate: make(chan struct{}, 1),
			answers: make(chan struct{}, 1), numbers: map[string]int{}}
		if flaw == "shared names" {
			f.Objects = one
		}
		mend := func() {
			connected := make(chan struct{})
			f.cut.Store(&connected)
		}
		mend()
		open := func(gate chan struct{}) func() { return func() { gate <- struct{}{} } }
		open(f.gate)()
		open(f.answers)()
		second := f
		if flaw == "a store for each address" {
			second = &fake{Objects: new(memstore.Objects), gate: f.gate, answers: f.answers}
			second.cut.Store(f.cut.Load())
		}
		return Storage{
			second: func() (driver.Objects, error) {
				return flawed{second, flaw, new(atomic.Bool), new(sync.Map)}, nil
			},
			Open: func(string) (driver.Objects, error) {
				select {
				case <-*f.cut.Load():
					if flaw == "Open needs the server" {
						return nil, errCut
					}
				default:
				}
				return flawed{f, flaw, new(atomic.Bool), new(sync.Map)}, nil
			},
			Delete: func(name string) error {
				f.Set(map[string][]byte{name: nil})
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.numbers, name)
				return nil
			},
			Stall: func() func() { <-f.gate; return open(f.gate) },
			Hold:  func() func() { <-f.answers; return open(f.answers) },
			Cut: func() func() {
				f.cutAt.Store(time.Now().Unix())
				close(*f.cut.Load())
				return mend
			},
			Outage: 10 * time.Minute,
		}
	}
}

// Each flaw fails the checks that are for it, with messages that say what is wrong.
func TestRunCatchesWrongServers(t *testing.T) {
	for flaw, wants := range map[string][]string{
		"none": nil,
		"no condition": {
			"succeeded on condition that there is no such object, twice",
			"succeeded with a version that it never had",
			"succeeded with the version before",
			"succeeded with a version, of an object that was never written",
			"succeeded with the version that a deleted object had",
			"succeeded with a version from before it was deleted",
			"want one: writes are not conditional",
		},
		"looks before it creates":   {"want one: writes are not conditional"},
		"compares before it writes": {"is not among those that led to the last one"},
		"numbers that begin again": {
			"succeeded with a version from before it was deleted"},
		"numbers, and later ones":                  {"succeeded with a version that it never had"},
		"a store for each address":                 {"a client at another address reads 0 bytes"},
		"refuses every write":                      {"0 were acknowledged"},
		"a hundredth of the reads is of a replica": {"\n"}, // by whichever check meets one
		"no place":                              {"want a place"},
		"Prepare draws another place":           {"a second Prepare has changed the place"},
		"writes elsewhere, too":                 {"and that nothing is written"},
		"another error elsewhere":               {"got error elsewhere, want"},
		"forgets a write in twenty":             {"is not among those that led to the last one"},
		"yes to the same data":                  {"succeeded with the version before"},
		"hash of the length":                    {"want the new version"},
		"no version of its own writes":          {"returned the version \"\""},
		"other versions of its own writes":      {"as a Read returns it"},
		"responds with other data":              {"and 2 bytes; want"},
		"conflicts are other errors":            {"Write with", "one of 8 writes at once"},
		"data that it was given":                {"that differ from the"},
		"data that it needs itself":             {"that differ from the"},
		"shared names":                          {"to another storage only has the version"},
		"other ends of lines":                   {"kept byte by byte"},
		"at most 16 KB":                         {"reads 16384 bytes"},
		"a cache in each client":                {"another client reads"},
		"reads of a replica":                    {"which was known before"},
		"no error for what is missing":          {"that was never written has the version"},
		"an error for what is missing":          {"Read of config has the place"},
		"swallowed errors":                      {"Write that the server does not answer"},
		"errors of its own":                     {"got error timeout"},
		"obeys a context before a request only": {"Read that", "Write that"},
		"a clock that stands still":             {"it must be the server's clock"},
		"a clock of another zone":               {"want whole seconds of the server's clock"},
		"a clock with fractions of a second":    {"want whole seconds of the server's clock"},
		"the client's clock":                    {"which is the client's"},
		"the client's clock after the response": {"the server's time when it responded"},
		"a place for each object":               {"that of the object \"config\" is \"config\""},
		"a place that copies share":             {"a copy in another storage has the same"},
		"a place that changes":                  {"a write has changed the place"},
		"swallows a cut in flight":              {"is not among those that led to the last one"},
		"every error is permanent":              {"neither ErrChanged nor permanent"},
		"takes an outage for a conflict":        {"neither ErrChanged nor permanent"},
		"Open needs the server":                 {"it must send no request"},
		"gives up after five minutes":           {"must try to connect for as long"},
		"Close of every client":                 {"the client is closed"},
		"Close takes a minute":                  {"it has not returned"},
		"Close waits for the server":            {"while the server does not answer: it has not"},
		"Close of what is not open":             {"Close before the first call"},
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := &verdicts{TB: t}
				for _, c := range checks {
					var done sync.WaitGroup
					open := storages(flaw)
					done.Go(func() { // which may end its goroutine
						c.run(v, func(testing.TB) Storage { return open(v).prepared(v) })
					})
					done.Wait()
				}
				time.Sleep(time.Hour) // until every Close has returned
				for _, want := range wants {
					if !strings.Contains(v.said, want) {
						t.Errorf("the checks say %q, want %q", v.said, want)
					}
				}
				if wants == nil && v.said != "" {
					t.Errorf("the checks say %q", v.said)
				}
			})
		})
	}
}

// verdicts is a test that is expected to fail.
type verdicts struct {
	testing.TB
	mu   sync.Mutex
	said string
}

func (v *verdicts) Helper() {}

func (v *verdicts) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.said += fmt.Sprintf(format, args...) + "\n"
}

func (v *verdicts) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}
