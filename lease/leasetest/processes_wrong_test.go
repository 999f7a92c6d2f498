//go:build unix

package leasetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/stores"
)

// wrong is a directory's objects with a flaw.
type wrong struct {
	driver.Objects
	flaw, dir string
}

func (w wrong) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	if !strings.HasPrefix(name, "page-") || version == "" {
		return w.Objects.Write(ctx, name, data, version)
	}
	switch w.flaw {
	case "no condition":
		time.Sleep(200 * time.Millisecond) // so that other writes meet it
		for {
			now, err := w.Read(ctx, name)
			if err != nil {
				return now, err
			}
			o, err := w.Objects.Write(ctx, name, data, now.Version)
			if !errors.Is(err, driver.ErrChanged) {
				return o, err
			}
		}
	case "not on a disk": // the version is the data before
		if err := os.WriteFile(filepath.Join(w.dir, name+old), []byte(version),
			0o600); err != nil {
			return driver.Object{}, err
		}
	case "swallowed errors":
		if _, err := os.Stat(w.dir + readOnly); err == nil {
			return driver.Object{Version: string(data)}, nil
		}
	}
	return w.Objects.Write(ctx, name, data, version)
}

const (
	old      = ".old"
	readOnly = ".read-only"
)

func init() {
	stores.Register("leasetest", func(url string) (stores.Store, error) {
		flaw, dir, _ := strings.Cut(strings.TrimPrefix(url, "leasetest:"), ":")
		s, err := filestore.New(dir)
		if err != nil {
			return nil, err
		}
		objects := s.(interface{ Objects() driver.Objects }).Objects()
		return stores.New(wrong{objects, flaw, dir},
			driver.Layout{Name: "leasetest", BlocksPerPage: 16})
	})
}

// outage makes the directory unreachable, as another process does that locks it, or read-only.
func (w wrong) outage(during func()) error {
	if w.flaw == "swallowed errors" { // a client that cannot read has nothing to write
		if err := os.WriteFile(w.dir+readOnly, nil, 0o600); err != nil {
			return err
		}
		during()
		return os.Remove(w.dir + readOnly)
	}
	dir, err := os.Open(w.dir)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	during()
	forgotten, err := filepath.Glob(filepath.Join(w.dir, "*"+old))
	for _, name := range forgotten { // each page's last write
		err = errors.Join(err, os.Rename(name, strings.TrimSuffix(name, old)))
	}
	return errors.Join(err, dir.Close())
}

// runOn runs processes on a directory with a flaw.
func runOn(tb testing.TB, flaw string) {
	w := wrong{flaw: flaw, dir: tb.TempDir()}
	Processes{URL: "leasetest:" + flaw + ":" + w.dir, Outage: w.outage}.Run(tb)
}

func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	runOn(t, "none")
}

// Each mistake is certain to occur, however busy the machine is: all pages forget a write, every
// write of an outage fails, or writes take so long that they meet.
func TestProcessesCatchWrongStores(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, flaw := range []string{"no condition", "not on a disk", "swallowed errors"} {
		t.Run(flaw, func(t *testing.T) {
			v := judged(t, func(tb testing.TB) { runOn(tb, flaw) })
			if !regexp.MustCompile("generated before|grants overlap|was lost").MatchString(v.said) {
				t.Errorf("not seen; the judge reports %q", v.said)
			}
		})
	}
}
