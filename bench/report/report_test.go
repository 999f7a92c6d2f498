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
func sample(maker string, part float64) string {
	var b strings.Builder
	b.WriteString("processor: family 25 (Zen 4)\nmaker: " + maker + "\nwithout: nothing\n")
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
	defer func(was string) { vectors = was }(vectors)
	const amd, intel = "AuthenticAMD", "GenuineIntel"
	file := filepath.Join(t.TempDir(), "runs.txt")
	for _, tt := range []struct {
		vectors string
		runs    string
		fails   string   // with -check
		reports []string // without
	}{
		{vectors: "AVX-512", runs: sample(amd, 0.755)},
		{vectors: "AVX-512", runs: sample(amd, 0.77), fails: "2 targets"},
		{vectors: "AVX-512", runs: sample(amd, 3), fails: "7 targets"},
		{vectors: "AVX2", runs: sample(amd, 0.905)},
		{vectors: "AVX2", runs: sample(amd, 0.93), fails: "1 targets"},
		{vectors: "AVX-512", runs: sample(intel, 0.925)},
		{vectors: "AVX-512", runs: sample(intel, 0.945), fails: "2 targets"},
		{vectors: "AVX2", runs: sample(intel, 1.005)},
		{vectors: "AVX2", runs: sample(intel, 1.04), fails: "1 targets"},
		// what is not known is not judged
		{vectors: "AVX-512", runs: sample("HygonGenuine", 3)},
		{vectors: "no vectors", runs: sample(amd, 3), reports: []string{"| – |", "not judged"}},
		{runs: "", fails: file + " contains no benchmark"},
		{vectors: "AVX2", runs: "maker: " + amd + "\nwithout: nothing\nBenchmarkOther 1 1 ns/op\n",
			fails: "9 targets were missed"},
		{vectors: "AVX2", runs: sample(amd, 0.75), reports: []string{
			"| processor | family 25 (Zen 4) |", "| NewIDs, two CPUs | 0.75 (0.75–0.75) |",
			"| rs/xid | by 24-bit hash",
			"| 57 ns | 0 |"}},
	} {
		vectors = tt.vectors
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
