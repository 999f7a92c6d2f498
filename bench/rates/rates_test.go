package rates

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/bench/internal/gens"
)

func TestEveryRateIsMeasuredAndPlotted(t *testing.T) {
	costs, err := Measure(t.Context(), io.Discard, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(costs) != len(all()) {
		t.Errorf("%d results of %d cells", len(costs), len(all()))
	}
	report := costs.Report()
	for _, p := range all() {
		if !strings.Contains(report, "| "+p.rate.Name+" |") {
			t.Errorf("no %s in:\n%s", p.rate.Name, report)
		}
	}
	file := filepath.Join(t.TempDir(), "cost.svg")
	if err := costs.Plot(file); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "NewIDs, one goroutine", "flat out", gens.XRay} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the plot", want)
		}
	}
	delete(costs, Cell{gens.NewIDs, Each32.Name, 1})
	if err := costs.Plot(file); err == nil {
		t.Error("a plot lacks one of its rates")
	}
}

// Everything that has a target is in the report.
func TestJudgedCellsAreReported(t *testing.T) {
	reported := make(map[Cell]bool)
	for _, p := range all() {
		reported[p.cell()] = true
	}
	for _, p := range judged() {
		if !reported[p.cell()] {
			t.Errorf("%+v has a target but no row", p.cell())
		}
	}
}
