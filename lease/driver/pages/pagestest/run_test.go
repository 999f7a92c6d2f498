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
	gate *gate
	old  map[string]pages.Object
}

// gate is closed while the server does not answer.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) stall() (resume func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open = open
	return func() { close(open) }
}

// pass waits for the server.
func (f flawed) pass(ctx context.Context) error {
	f.gate.mu.Lock()
	open := f.gate.open
	f.gate.mu.Unlock()
	if f.flaw == "obeys a context before a request only" {
		if ctx.Err() == nil {
			<-open
		}
		return ctx.Err()
	}
	select {
	case <-open:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
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
	switch f.flaw {
	case "no condition":
		version = f.has(name).Version
	case "no condition for a new object":
		if version == "" {
			version = f.has(name).Version
		}
	case "hash of the length":
		if version != "" && version == fmt.Sprint(len(f.has(name).Data)) {
			version = f.has(name).Version
		}
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

// has returns what a server has under a name.
func (s *Server) has(name string) pages.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object(name)
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
		g := &gate{open: make(chan struct{})}
		close(g.open)
		return Storage{
			Open: func() (pages.Server, error) {
				if flaw == "memory of its own" {
					server = &Server{}
				}
				return flawed{server, flaw, g, map[string]pages.Object{}}, nil
			},
			Delete: func(name string) error {
				if flaw == "deleted object" {
					o := server.has(name)
					_, err := server.Write(context.Background(), name, []byte(tombstone), o.Version)
					return err
				}
				server.Delete(name)
				return nil
			},
			Stall: g.stall,
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
		"shared names":                          "two storages share names",
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
