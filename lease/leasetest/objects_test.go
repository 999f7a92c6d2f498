package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

func TestMain(m *testing.M) {
	Worker()
	os.Exit(m.Run())
}

// flawed is a client of a server in memory.
type flawed struct {
	*driver.Memory
	flaw    string
	gate    chan struct{} // has an element while the server answers
	old     map[string]driver.Object
	replica *sync.Map // name → the object before its last write
}

// pass waits for the server.
func (f flawed) pass(ctx context.Context) error {
	inFlight := ctx
	if f.flaw == "obeys a context before a request only" && ctx.Err() == nil {
		inFlight = context.Background()
	}
	select {
	case <-f.gate:
		f.gate <- struct{}{}
	case <-inFlight.Done():
	}
	return ctx.Err()
}

func (f flawed) Read(ctx context.Context, name string) (driver.Object, error) {
	sent := time.Now().Truncate(time.Second)
	if err := f.pass(ctx); err != nil {
		return driver.Object{}, err
	}
	o, err := f.Memory.Read(ctx, name)
	switch f.flaw {
	case "deleted object":
		if string(o.Data) == tombstone {
			o.Data = nil
		}
	case "stale reads":
		was, ok := f.old[name]
		if f.old[name] = o; ok {
			o = was
		}
	case "a clock that stands still":
		o.Time = time.Now().Truncate(time.Hour)
	case "the client's clock":
		o.Time = sent
	case "hash of the length":
		o.Version = fmt.Sprint(len(o.Data))
	case "reads of a replica":
		if was, ok := f.replica.Load(name); ok && rand.IntN(5) == 0 {
			o = was.(driver.Object)
		}
	case "trimmed text":
		o.Data = []byte(strings.TrimSpace(string(o.Data)))
	case "no error for what is missing":
		if o.Version == "" {
			o.Version = "0"
		}
	}
	return o, err
}

func (f flawed) Write(ctx context.Context, name string, data []byte, version string) (driver.Object,
	error) {
	if err := f.pass(ctx); err != nil {
		if f.flaw == "swallowed errors" {
			err = nil
		}
		return driver.Object{}, err
	}
	o, _ := f.Memory.Read(ctx, name)
	switch f.flaw {
	case "reads of a replica":
		if o.Version == version {
			f.replica.Store(name, o)
		}
	case "forgets a write in twenty":
		if o.Version == version && rand.IntN(20) == 0 {
			return driver.Object{Version: string(data)}, nil
		}
	case "a write in twenty is made and refused":
		if o, err := f.Memory.Write(ctx, name, data, version); err != nil || rand.IntN(20) > 0 {
			return o, err
		}
		return driver.Object{}, driver.ErrChanged
	case "compares before it writes":
		if o.Version == version {
			time.Sleep(rand.N(100 * time.Microsecond))
			o, _ = f.Memory.Read(ctx, name)
			version = o.Version
		}
	}
	if f.flaw == "yes to the same data" && string(o.Data) == string(data) {
		return o, nil
	}
	if f.flaw == "no condition" || f.flaw == "no condition for a new object" && version == "" ||
		f.flaw == "hash of the length" && version != "" && version == fmt.Sprint(len(o.Data)) {
		version = o.Version
	}
	return f.Memory.Write(ctx, name, data, version)
}

func (f flawed) List(ctx context.Context) (map[string]driver.Object, error) {
	if err := f.pass(ctx); err != nil {
		return nil, err
	}
	all, err := f.Memory.List(ctx)
	if f.flaw == "first thousand" {
		for i := 1000; i < 2000; i++ {
			delete(all, fmt.Sprintf("page-%04d", i))
		}
	}
	return all, err
}

const tombstone = "(deleted)"

// storages returns storages whose clients have a flaw.
func storages(flaw string) func(testing.TB) Storage {
	one := &driver.Memory{}
	return func(testing.TB) Storage {
		server := &driver.Memory{Clock: time.Now}
		if flaw == "shared names" {
			server = one
		}
		gate, replica := make(chan struct{}, 1), new(sync.Map)
		gate <- struct{}{}
		return Storage{
			Open: func() (driver.Objects, error) {
				if flaw == "memory of its own" {
					server = &driver.Memory{}
				}
				return flawed{server, flaw, gate, map[string]driver.Object{}, replica}, nil
			},
			Delete: func(name string) error {
				if flaw == "deleted object" {
					o, err := server.Read(context.Background(), name)
					if err == nil {
						_, err = server.Write(context.Background(), name, []byte(tombstone),
							o.Version)
					}
					return err
				}
				server.Delete(name)
				return nil
			},
			Stall: func() func() {
				<-gate
				return func() { gate <- struct{}{} }
			},
		}
	}
}

func TestRun(t *testing.T) { Run(t, storages("none")) }

// Each flaw fails the check that is for it, within seconds, with a message that says what is wrong.
func TestRunCatchesWrongServers(t *testing.T) {
	for flaw, want := range map[string]string{
		"no condition":                  "writes are not conditional",
		"no condition for a new object": "on condition that there is no such object, twice",
		"memory of its own":             "another client reads 0 bytes",
		"stale reads":                   "does it see every write at once",
		"swallowed errors": "Write with a context that is over: got error " +
			"<nil>",
		"first thousand":                        "List has 1000 of 1200 objects",
		"deleted object":                        "an object that was deleted has the version",
		"obeys a context before a request only": "it must obey its context in flight, too",
		"shared names": "was written to another storage only has the " +
			"version",
		"hash of the length":        "must change with every write",
		"trimmed text":              "kept byte by byte",
		"yes to the same data":      "two copies of a process would both be told yes",
		"a clock that stands still": "it must be the server's clock",
		"the client's clock":        "which is the client's",
		"reads of a replica": "which was known before: does a read see every " +
			"write",
		"forgets a write in twenty":             "is not among those that led to the last one",
		"a write in twenty is made and refused": "was refused, but stored",
		"compares before it writes":             "is not among those that led to the last one",
		"no error for what is missing":          "an object that was never written has the version",
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			said := ""
			for _, c := range checks {
				said += judged(t, func(tb testing.TB) { c.run(tb, storages(flaw)) }).said
			}
			if !strings.Contains(said, want) {
				t.Errorf("the checks say %q, want %q", said, want)
			}
		})
	}
}

// verdicts is a test that is expected to fail.
type verdicts struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   string
}

// judged runs a test that may end its goroutine.
func judged(tb testing.TB, run func(tb testing.TB)) *verdicts {
	v := &verdicts{TB: tb}
	var done sync.WaitGroup
	done.Go(func() { run(v) })
	done.Wait()
	return v
}

func (v *verdicts) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
	if len(v.said) < 10_000 {
		v.said += fmt.Sprintf(format, args...) + "\n"
	}
}

func (v *verdicts) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *verdicts) Helper()             {}
func (v *verdicts) Logf(string, ...any) {}
func (v *verdicts) Error(args ...any)   { v.Errorf("%s", fmt.Sprint(args...)) }
func (v *verdicts) Fatal(args ...any)   { v.Error(args...); runtime.Goexit() }
func (v *verdicts) Fatalf(format string,
	args ...any) {
	v.Errorf(format, args...)
	runtime.Goexit()
}
