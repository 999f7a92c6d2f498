package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

var opened string // the last URL

func opener(url string) (driver.Store, error) {
	opened = url
	return driver.NewMemory(lease.Description{}), nil
}

func init() { driver.Register("driver-test", opener) }

func TestOpen(t *testing.T) {
	if s, err := driver.Open("driver-test:a:b"); err != nil || s == nil ||
		opened != "driver-test:a:b" {
		t.Errorf("store %v, error %v, URL %q", s, err, opened)
	}
	for url, text := range map[string]string{
		"": "one of: driver-test://", "driver-test": "one of",
		"other://user:hunter2@host": "import its package", "Driver-Test:x": "one of",
		"postgres://user:hunter2@host/": "import _ " +
			`"github.com/traceflake/traceflake/lease/pgstore"`,
	} {
		_, err := driver.Open(url)
		if !errors.Is(err, lease.ErrInvalidRequest) || !strings.Contains(err.Error(), text) ||
			strings.Contains(err.Error(), "hunter2") {
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
