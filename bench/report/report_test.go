package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample returns ten rounds in which traceflake takes the given part of the SDK's time, with one
// percent of noise, and rounds of builds with a part left out.
func sample(part float64) string {
	var b strings.Builder
	b.WriteString("processor: family 25 (Zen 4)\nwithout: nothing\n")
	line := func(name string, ns float64) {
		fmt.Fprintf(&b, "Benchmark%s 100 %g ns/op 0 allocs/op\n", name, ns)
	}
	for round := range 10 {
		sdk := 100 * (1 + float64(round))
		for _, l := range limits {
			again := sdk * (1 + float64(round%3-1)/100)
			for gen, ns := range map[string]float64{
				"sdk": sdk, "again": again,
				"traceflake": part * sdk, "xray": 2 * sdk,
			} {
				line(strings.Replace(l.name, "*", gen, 1), ns)
			}
		}
		line("Rival/id=rs.xid", 57)
	}
	b.WriteString("without: `-tags purego`\n")
	for range 10 {
		line("NewIDs/rate=flat/gen=sdk", 20)
		line("NewIDs/rate=flat/gen=traceflake", 124)
	}
	return b.String()
}

// A target that was not measured must not pass as met.
func TestReport(t *testing.T) {
	defer func(was bool) { wide = was }(wide)
	file := filepath.Join(t.TempDir(), "runs.txt")
	for _, tt := range []struct {
		wide    bool
		runs    string
		fails   string   // with -check
		reports []string // without
	}{
		{wide: true, runs: sample(0.755)},
		{wide: true, runs: sample(0.77), fails: "2 targets"},
		{wide: true, runs: sample(3), fails: "7 targets"},
		{wide: false, runs: sample(0.905)},
		{wide: false, runs: sample(0.93), fails: "2 targets"},
		{runs: "", fails: file + " contains no benchmark"},
		{runs: "without: nothing\nBenchmarkOther 1 1 ns/op\n", fails: "9 targets were missed"},
		{runs: sample(0.75), reports: []string{"| processor | family 25 (Zen 4) |",
			"| NewIDs, two CPUs | 0.75 (0.75–0.75) |", "| rs/xid | by 24-bit hash",
			"| 57 ns | 0 |"}},
	} {
		wide = tt.wide
		if err := os.WriteFile(file, []byte(tt.runs), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run([]string{"-check", file}, &out)
		if (err == nil) != (tt.fails == "") || err != nil &&
			!strings.HasPrefix(err.Error(), tt.fails) {
			t.Errorf("got %v, want %q\n%s", err, tt.fails, &out)
		}
		_ = run([]string{file}, &out)
		for _, want := range tt.reports {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, &out)
			}
		}
	}
}
