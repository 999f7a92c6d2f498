package filestore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/fleet"
)

// service is a process that uses the directory at path.
type service struct {
	*testing.T
	ids *fleet.IDs
}

// start starts a service, which has no lease yet: its IDs are random. It must not take longer than
// the second that a start waits for a lease, and what a machine under load adds: less than a call
// to the store may take.
func start(t *testing.T, path string) service {
	t.Helper()
	reportstest.Collect(t)
	began := time.Now()
	ids, err := fleet.Config{Store: "file:" + path}.Open(t.Context())
	if took := time.Since(began); err != nil || took > 4*time.Second {
		t.Errorf("it took %s to start: %v", took, err)
		return service{t, new(fleet.IDs)}
	}
	if id, span := ids.NewIDs(t.Context()); !id.IsValid() || !span.IsValid() ||
		ids.Fallbacks() == 0 {
		t.Errorf("the IDs are %s and %s, %d of them random", id, span, ids.Fallbacks())
	}
	return service{t, ids}
}

// recovers checks that the service gets a lease by itself, and ends it.
func (s service) recovers() {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	err := s.ids.Ready(ctx)
	for lease.Permanent(err) && ctx.Err() == nil { // an operator has just mended it
		time.Sleep(50 * time.Millisecond)
		err = s.ids.Ready(ctx)
	}
	if err != nil {
		s.Errorf("when the directory is back: %v", err)
	}
	before := s.ids.Fallbacks()
	if s.ids.NewIDs(ctx); s.ids.Fallbacks() != before {
		s.Error("the IDs are still random")
	}
	if err := s.ids.Shutdown(ctx); err != nil {
		s.Error(err)
	}
}

// 50 processes start at once on a disk whose syncs hang, before there is a store.
func TestStartsOnAHungDisk(t *testing.T) {
	mend := filestore.HangSyncs(t)
	path := filepath.Join(t.TempDir(), "leases")
	var services [50]service
	var all sync.WaitGroup
	for i := range services {
		all.Go(func() { services[i] = start(t, path) })
	}
	all.Wait()
	mend()
	for _, s := range services {
		all.Go(s.recovers)
	}
	all.Wait()
}

const (
	root   = 0
	nobody = 65534
)

// TestStartsWithoutRights starts services that may not read or write the directory, until an
// operator changes that.
func TestStartsWithoutRights(t *testing.T) {
	for what, mode := range map[string]os.FileMode{"another owner's": 0, "read-only": 0o555} {
		above := t.TempDir()
		path := filepath.Join(above, "leases")
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode),
			os.Chmod(above, 0o755), os.Chmod(filepath.Dir(above), 0o755)); err != nil {
			t.Fatal(err)
		}
		become(t, nobody)
		s := start(t, path)
		err := asRoot(func() error {
			if os.Getuid() != root {
				return os.Chmod(path, 0o700)
			}
			return errors.Join(os.Chown(path, nobody, nobody), os.Chmod(path, 0o700))
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s.recovers()
		become(t, root)
	}
}

// become changes the user of the process if it is root, which has all rights.
func become(t *testing.T, user int) {
	t.Helper()
	if os.Getuid() != root {
		return
	}
	if err := syscall.Setresuid(-1, user, -1); err != nil {
		t.Fatal(err)
	}
}

// asRoot calls f in a thread of the process's original user, while the other threads continue.
func asRoot(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	user := os.Geteuid()
	if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(os.Getuid()),
		^uintptr(0)); err != 0 {
		return err
	}
	err := f()
	if _, _, back := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(user),
		^uintptr(0)); back != 0 {
		err = errors.Join(err, back)
	}
	return err
}
