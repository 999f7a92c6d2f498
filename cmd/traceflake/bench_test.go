package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkLines measures a line of output in each format.
func BenchmarkLines(b *testing.B) {
	secret := filepath.Join(b.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(secretA), 0o600); err != nil {
		b.Fatal(err)
	}
	var ids strings.Builder
	const n = 20_000
	if code := run(b.Context(), []string{"new", "-n", "20000", "--secret-file", secret}, nil, &ids, io.Discard); code != 0 {
		b.Fatal(code)
	}
	for _, args := range []string{"inspect", "inspect -o json", "verify", "verify -o json"} {
		b.Run(args, func(b *testing.B) {
			words := append(strings.Fields(args), "--secret-file", secret)
			b.ReportAllocs()
			for b.Loop() {
				if code := run(b.Context(), words, strings.NewReader(ids.String()), io.Discard, io.Discard); code != 0 {
					b.Fatal(code)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/line")
		})
	}
}
