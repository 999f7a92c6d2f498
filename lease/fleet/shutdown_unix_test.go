//go:build unix

package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease/fleet"
)

// A directory that another process keeps locked, or whose disk does not answer, keeps a process
// from ending for 5 s at most, and for 2 s if the context is over.
func TestShutdownWithAHungDirectory(t *testing.T) {
	reportstest.Collect(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for what, hang := range map[string]func(t *testing.T, path string){"locked": lock,
		"frozen": freeze} {
		for ctx, most := range map[context.Context]time.Duration{
			t.Context(): 5 * time.Second, canceled: 2 * time.Second,
		} {
			path := filepath.Join(t.TempDir(), "leases")
			ids, err := fleet.Config{Store: "file:" + path}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := ids.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			hang(t, path)
			all.Go(func() {
				began := time.Now()
				err := ids.Shutdown(ctx)
				if took := time.Since(began); err == nil || took > most+loaded {
					t.Errorf("%s: Shutdown took %s, want at most %s: %v", what, took, most, err)
				}
			})
		}
	}
	all.Wait()
}

// loaded is how late a timer may be on a machine under load.
const loaded = 500 * time.Millisecond

// lock locks a directory until the test ends.
func lock(t *testing.T, path string) {
	t.Helper()
	d, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// freeze puts pipes without a writer in place of a store's pages until the test ends: opening one
// waits, as every access to a disk that does not answer.
func freeze(t *testing.T, path string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(path, "page-*"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		if err := os.Remove(page); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(page, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // waiting readers continue
			if w, err := os.OpenFile(page, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = w.Close()
			}
		})
	}
}
