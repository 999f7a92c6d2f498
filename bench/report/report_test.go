package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample returns ten rounds in which traceflake takes the given part of the SDK's time, with one
// percent of noise, and rounds of a build with a part left out.
func sample(t *testing.T, maker, vectors string, part float64) string {
	var targets []target
	if err := json.Unmarshal(targetsJSON, &targets); err != nil {
		t.Fatal(err)
	}
	text := "processor: family 25 (Zen 4)\nmaker: " + maker + "\nvectors: " +
		vectors + "\nwithout: nothing\n"
	for round := range 10 {
		sdk := 100 * (1 + float64(round))
		for _, l := range targets {
			for gen, ns := range map[string]float64{"sdk": sdk, "traceflake": part * sdk,
				"again": sdk * (1 + float64(round%3-1)/100)} {
				text += fmt.Sprintf("Benchmark%s 100 %g ns/op\n",
					strings.Replace(l.Benchmark, "*", gen, 1), ns)
			}
		}
	}
	return text + "without: `-tags purego`\nBenchmarkNewIDs/rate=flat/gen=traceflake 1 9999 ns/op\n"
}

// A target that was not measured must not pass as met; what is not known is not judged.
func TestReport(t *testing.T) {
	const amd, intel, wide, narrow = "AuthenticAMD", "GenuineIntel", "AVX-512", "AVX2"
	for _, tt := range []struct {
		runs   string
		missed int
		want   string
	}{
		{sample(t, amd, wide, 0.755), 0, "| NewIDs, one CPU | 0.76 (0.76–0.76) | 0.75 |"},
		{sample(t, amd, wide, 0.77), 2, "missed by 0.02"},
		{sample(t, amd, wide, 3), 7, "| processor | family 25 (Zen 4) |"},
		{sample(t, amd, narrow, 0.905), 0, "met within the noise"},
		{sample(t, intel, narrow, 1.04), 1, "missed by 0.04"},
		{sample(t, "HygonGenuine", wide, 3), 0, "| – | 1.00 (0.99–1.01) | not judged |"},
		{"maker: " + amd + "\nvectors: AVX2\nwithout: nothing\nBenchmarkOther 1 1 ns/op\n", 7,
			"not measured"},
		{"", -1, ""},
	} {
		file := filepath.Join(t.TempDir(), "runs.txt")
		if err := os.WriteFile(file, []byte(tt.runs), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		missed, err := run(file, &out)
		if (err != nil) != (tt.missed < 0) || err == nil && missed != tt.missed ||
			!strings.Contains(out.String(), tt.want) {
			t.Errorf("%d missed, %v; want %d and %q in\n%s", missed, err, tt.missed, tt.want, &out)
		}
	}
}
