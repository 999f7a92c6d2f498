package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/randflake/lease"
)

type openedMemory struct{ *lease.Memory }

func (openedMemory) Close() error { return nil }

func TestDriver(t *testing.T) {
	var gotURL string
	var gotNodes lease.NodeRange
	lease.Register("driver-test", func(_ context.Context, url string, nodes lease.NodeRange) (lease.OpenedStore, error) {
		gotURL, gotNodes = url, nodes
		return openedMemory{lease.NewMemory()}, nil
	})
	nodes := lease.NodeRange{First: 8, Nodes: 8, BlockSize: 8}
	s, err := lease.OpenStore(t.Context(), "driver-test:a:b", nodes)
	if err != nil || s == nil || gotURL != "driver-test:a:b" || gotNodes != nodes {
		t.Errorf("store %v, error %v, URL %q, nodes %v", s, err, gotURL, gotNodes)
	}
	if !slices.Contains(lease.Schemes(), "driver-test") {
		t.Errorf("schemes %q", lease.Schemes())
	}
	for _, url := range []string{"", "driver-test", "other://user:hunter2@host", "Driver-Test:x"} {
		_, err := lease.OpenStore(t.Context(), url, nodes)
		if !errors.Is(err, lease.ErrUnknownScheme) || !strings.Contains(err.Error(), "driver-test") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a second driver for the scheme does not panic")
		}
	}()
	lease.Register("driver-test", func(context.Context, string, lease.NodeRange) (lease.OpenedStore, error) { return nil, nil })
}
