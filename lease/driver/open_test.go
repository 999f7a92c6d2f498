package driver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

var opened string // the last URL

func opener(url string) (driver.Store, error) {
	opened = url
	return driver.NewMemory(driver.AllNodes), nil
}

func init() { driver.Register("driver-test", opener) }

func TestOpen(t *testing.T) {
	if s, err := driver.Open("driver-test:a:b"); err != nil || s == nil || opened != "driver-test:a:b" {
		t.Errorf("store %v, error %v, URL %q", s, err, opened)
	}
	for url, text := range map[string]string{
		"": "one of: driver-test://", "driver-test": "one of", "other://user:hunter2@host": "import its package", "Driver-Test:x": "one of",
		"postgres://user:hunter2@host/": `import _ "github.com/traceflake/traceflake/lease/pgstore"`,
	} {
		_, err := driver.Open(url)
		if !errors.Is(err, driver.ErrUnknownScheme) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a second driver for the scheme does not panic")
		}
	}()
	driver.Register("driver-test", opener)
}

// embedded is a store that keeps its own secret.
type embedded struct{ *driver.Memory }

func (e embedded) Codec(ctx context.Context) (*randflake.Codec, error) {
	d, err := e.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return randflake.NewCodec([]byte(d.ID[:16]))
}

func (embedded) OnRestore() {}

// Processes that start at once, without a store, use one secret.
func TestEnsure(t *testing.T) {
	s := embedded{new(driver.Memory)}
	var secrets sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			codec, err := driver.Ensure(t.Context(), s, lease.DefaultTTL)
			if err != nil {
				t.Error(err)
				return
			}
			secrets.Store(lease.Fingerprint(codec, ""), true)
		})
	}
	all.Wait()
	n := 0
	if secrets.Range(func(any, any) bool { n++; return true }); n != 1 {
		t.Errorf("the processes have %d secrets", n)
	}
	if d, err := s.Describe(t.Context()); err != nil || d.LongestTTL != lease.DefaultTTL || driver.RangeOf(d) != driver.AllNodes {
		t.Errorf("%+v, %v", d, err)
	}
}
