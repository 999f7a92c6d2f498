package main

import (
	"errors"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestMeasure: a small table of ours has the answers of the exporter's, and an answer that differs
// is found.
func TestMeasure(t *testing.T) {
	var all figures
	for _, layout := range []string{"exporter", "ours"} {
		f, err := measure(t.Context(), table{"reads", 0.5, 2, 25, layout, 1})
		if errors.Is(err, child.ErrNotInstalled) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = all.with(f)
	}
	if err := all.check(); err != nil {
		t.Error(err)
	}
	all[1].Values[9].Answer += "0"
	if all.check() == nil {
		t.Error("an answer differs, and is not found")
	}
}
