package stores_test

import (
	"errors"
	"io/fs"
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
	stores.Register("wrong", func(url string) (stores.Store, error) {
		if url == "wrong:missing-file" {
			return nil, fs.ErrNotExist
		}
		return nil, errors.New("the URL is wrong")
	})
	stores.Register("no-pages", func(string) (stores.Store, error) {
		return stores.New(new(memstore.Objects), driver.Layout{Name: "no-pages"})
	})
}

// What is wrong with a URL, seen in set-ups of teams, and the fix.
func TestMistakes(t *testing.T) {
	for url, want := range map[string]string{
		`"wrong://app:hunter2@host/db"`:         "remove the quotes",
		"'wrong://app:hunter2@host/db'":         "remove the quotes",
		"<no value>":                            "a placeholder was not replaced",
		"wrong://app:$(PASSWORD)@host/db":       "a placeholder was not replaced",
		"wrong://app:hunter2@host/db # it":      "remove the comment",
		"WRONG://app:hunter2@host/db":           "in lower case",
		"wrong://app:hunter2@::1:5432/db":       "in brackets",
		"wrong://app:hunter2%%40b@host/db":      "% in the password as %25",
		"wrong://app:hun%ter2@host/db":          "% in the password as %25",
		"wrong://app:hunter2/a@host/db":         "as %XX",
		"wrong://app:hunter2@b@host/db":         "as %XX",
		"wrong://app:hunter2 b@host/db":         "as %XX",
		"wrong://app:hunter2@[::1]:5432/db":     "correct the URL",
		"wrong://host:5432/db?a=b@c":            "correct the URL",
		"stores-test://app:${PASSWORD}@host/db": "a placeholder was not replaced",
		"stores-test://app:{{ .x }}@host/db":    "a placeholder was not replaced",
		"jdbc:postgresql://host/db":             "postgres:// alone",
		"postgresql+asyncpg://app@host/db":      "postgres:// alone",
		"host=a password=hunter2 dbname=b":      "postgres://user:password@host:port/database",
		"https://app:hunter2@host:2379":         "the kind of the store in place of http",
		"/var/lib/traceflake/leases":            "write file: before",
		"00112233445566778899aabbccddeeff":      "as TRACEFLAKE_SECRET",
		"wrong:missing-file":                    "create the missing file",
	} {
		_, err := stores.Open(url)
		if fix := lease.Fix(err); !errors.Is(err, lease.ErrInvalidRequest) ||
			!strings.Contains(fix, want) || strings.Contains(lease.Advise(err).Error(), "hunter2") {
			t.Errorf("%s: %v → %q", url, err, fix)
		}
	}
}

func TestOpen(t *testing.T) {
	if s, err := stores.Open(" stores-test:a:b\n"); err != nil || s == nil ||
		opened != "stores-test:a:b" {
		t.Errorf("store %v, error %v, URL %q", s, err, opened)
	}
	for url, text := range map[string]string{
		"": "one of: example://, no-pages://, stores-test://, wrong://", "stores-test": "one of",
		"no-pages:":                 "no-pages: 0 blocks on a page",
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
	defer func() {
		if recover() == nil {
			t.Error("a second store for the scheme does not panic")
		}
	}()
	stores.Register("stores-test", opener)
}
