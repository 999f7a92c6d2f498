package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample has ten rounds in which traceflake takes the given part of the SDK's time, which is equal
// to itself within one per cent.
func sample(t *testing.T, part float64) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("commit: 0123\ncpu: a CPU\nwithout: nothing\n")
	line := func(name string, ns float64, more string) {
		fmt.Fprintf(&b, "Benchmark%s 100 %g ns/op%s\n", name, ns, more)
	}
	for round := range 10 {
		sdk := 100 * (1 + float64(round))
		for _, l := range limits {
			for gen, ns := range map[string]float64{"sdk": sdk, "again": sdk * (1 + float64(round%3-1)/100), "traceflake": part * sdk, "xray": 2 * sdk} {
				line(strings.Replace(l.name, "*", gen, 1), ns, " 0 allocs/op")
			}
		}
		line("Rival/id=rs.xid", 57, " 0 allocs/op")
	}
	b.WriteString("without: `-tags purego`\n")
	for range 10 {
		line("NewIDs/rate=flat/gen=sdk", 20, "")
		line("NewIDs/rate=flat/gen=traceflake", 124, "")
	}
	file := filepath.Join(t.TempDir(), "runs.txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTargets(t *testing.T) {
	defer func(was bool) { wide = was }(wide)
	for _, tt := range []struct {
		wide   bool
		part   float64
		missed string
	}{{true, 0.7, ""}, {true, 0.805, ""}, {true, 0.82, "1 targets"}, {true, 3, "7 targets"}, {false, 1.04, ""}, {false, 1.07, "1 targets"}} {
		wide = tt.wide
		var out strings.Builder
		err := run([]string{"-check", sample(t, tt.part)}, &out)
		if tt.missed == "" && err != nil || tt.missed != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.missed)) {
			t.Errorf("%+v: %v\n%s", tt, err, out.String())
		}
	}
}

// A target that was not measured must not pass as met.
func TestMissingBenchmarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.txt")
	for text, want := range map[string]string{"": "contains no benchmark", "without: nothing\nBenchmarkOther 1 1 ns/op\n": "9 targets were missed"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{"-check", file}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What was measured with a part left out of the build does not count.
func TestReport(t *testing.T) {
	var out strings.Builder
	if err := run([]string{sample(t, 0.75)}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| commit | 0123 |", "| NewIDs, two CPUs | 0.75 (0.75–0.75) |", "| rs/xid | by 24-bit hash", "| 57 ns | 0 |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
