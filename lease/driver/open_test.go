package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

type memory struct{ *driver.Memory }

func (memory) Close() error { return nil }

func TestOpen(t *testing.T) {
	var gotURL string
	var got driver.Options
	driver.Register("driver-test", func(_ context.Context, url string, o driver.Options) (driver.Store, error) {
		gotURL, got = url, o
		return memory{driver.NewMemory()}, nil
	})
	nodes := driver.NodeRange{First: 8, Nodes: 8, BlockSize: 8}
	want := driver.Options{Nodes: nodes, LongestTTL: time.Hour, Secret: driver.SharedSecret, Existing: true}
	s, err := driver.Open(t.Context(), "driver-test:a:b", nodes, driver.WithLongestTTL(time.Hour), driver.WithSecret(driver.SharedSecret), driver.Existing())
	if err != nil || s == nil || gotURL != "driver-test:a:b" || got != want {
		t.Errorf("store %v, error %v, URL %q, nodes %v", s, err, gotURL, got)
	}
	for _, url := range []string{"", "driver-test", "other://user:hunter2@host", "Driver-Test:x"} {
		_, err := driver.Open(t.Context(), url, nodes)
		if !errors.Is(err, driver.ErrUnknownScheme) || !strings.Contains(err.Error(), "driver-test") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a second driver for the scheme does not panic")
		}
	}()
	driver.Register("driver-test", func(context.Context, string, driver.Options) (driver.Store, error) { return nil, nil })
}
