package stores_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

var opened string // the last URL

func opener(url string) (stores.Store, error) {
	opened = url
	return memstore.New(lease.Description{}, nil), nil
}

func init() {
	stores.Register("stores-test", opener)
	stores.Register("no-pages", func(string) (stores.Store, error) {
		return stores.New(new(memstore.Objects), driver.Layout{Name: "no-pages"})
	})
}

func TestOpen(t *testing.T) {
	if s, err := stores.Open(" stores-test:a:b\n"); err != nil || s == nil ||
		opened != "stores-test:a:b" {
		t.Errorf("store %v, error %v, URL %q", s, err, opened)
	}
	for url, text := range map[string]string{
		"": "one of: example://, no-pages://, stores-test://", "stores-test": "one of",
		"no-pages:":                 "no-pages: lease: invalid request: 0 blocks on a page",
		"other://user:hunter2@host": "import its package", "Driver-Test:x": "one of",
		"postgres://user:hunter2@host/": "import _ " +
			`"github.com/traceflake/traceflake/lease/pgstore"`,
	} {
		_, err := stores.Open(url)
		if !errors.Is(err, lease.ErrInvalidRequest) || !strings.Contains(err.Error(), text) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	_, err := stores.Open("'postgres://user:hunter2@host/'")
	if fix := lease.Fix(err); !strings.Contains(fix, "remove the quotes") ||
		!strings.Contains(fix, "'postgres://host/'") {
		t.Errorf("quotes: %v → %q", err, fix)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second store for the scheme does not panic")
		}
	}()
	stores.Register("stores-test", opener)
}
