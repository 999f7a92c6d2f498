package pagestest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver/pages"
)

// flawed is a client of a server in memory.
type flawed struct {
	*Server
	flaw string
	gate chan struct{} // has an element while the server answers
	old  map[string]pages.Object
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

func (f flawed) Read(ctx context.Context, name string) (pages.Object, error) {
	if err := f.pass(ctx); err != nil {
		return pages.Object{}, err
	}
	o, err := f.Server.Read(ctx, name)
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
	case "hash of the length":
		o.Version = fmt.Sprint(len(o.Data))
	case "trimmed text":
		o.Data = []byte(strings.TrimSpace(string(o.Data)))
	case "no error for what is missing":
		if o.Version == "" {
			o.Version = "0"
		}
	}
	return o, err
}

func (f flawed) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	if err := f.pass(ctx); err != nil {
		if f.flaw == "swallowed errors" {
			err = nil
		}
		return pages.Object{}, err
	}
	o, _ := f.Server.Read(ctx, name)
	if f.flaw == "no condition" || f.flaw == "no condition for a new object" && version == "" ||
		f.flaw == "hash of the length" && version != "" && version == fmt.Sprint(len(o.Data)) {
		version = o.Version
	}
	return f.Server.Write(ctx, name, data, version)
}

func (f flawed) List(ctx context.Context) (map[string]pages.Object, error) {
	if err := f.pass(ctx); err != nil {
		return nil, err
	}
	all, err := f.Server.List(ctx)
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
	one := &Server{}
	return func(testing.TB) Storage {
		server := &Server{Now: time.Now}
		if flaw == "shared names" {
			server = one
		}
		gate := make(chan struct{}, 1)
		gate <- struct{}{}
		return Storage{
			Open: func() (pages.Server, error) {
				if flaw == "memory of its own" {
					server = &Server{}
				}
				return flawed{server, flaw, gate, map[string]pages.Object{}}, nil
			},
			Delete: func(name string) error {
				if flaw == "deleted object" {
					o, err := server.Read(context.Background(), name)
					if err == nil {
						_, err = server.Write(context.Background(), name, []byte(tombstone), o.Version)
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
		"no condition":                          "writes are not conditional",
		"no condition for a new object":         "on condition that there is no such object, twice",
		"memory of its own":                     "another client reads 0 bytes",
		"stale reads":                           "does it see every write at once",
		"swallowed errors":                      "Write with a context that is over: got error <nil>",
		"first thousand":                        "List has 1000 of 1200 objects",
		"deleted object":                        "an object that was deleted has the version",
		"obeys a context before a request only": "it must obey its context in flight, too",
		"shared names":                          "was written to another storage only has the version",
		"hash of the length":                    "must change with every write",
		"trimmed text":                          "kept byte by byte",
		"no error for what is missing":          "an object that was never written has the version",
	} {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			f := &failing{TB: t}
			for _, c := range checks {
				var done sync.WaitGroup
				done.Go(func() { c.run(f, storages(flaw)) })
				done.Wait()
			}
			if !strings.Contains(f.said, want) {
				t.Errorf("the checks say %q, want %q", f.said, want)
			}
		})
	}
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	mu   sync.Mutex
	said string
}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said += fmt.Sprintf(format, args...) + "\n"
}
func (f *failing) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }
func (f *failing) Error(args ...any)                 { f.Errorf("%s", fmt.Sprint(args...)) }
func (f *failing) Helper()                           {}
