package spans

import (
	"io"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/bench/internal/gens"
)

func TestEverySpanIsMeasured(t *testing.T) {
	costs, err := Measure(t.Context(), io.Discard, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Cells() {
		if costs[c] == nil || costs[c].Ratio(gens.Traceflake, gens.Default).Of+costs[c].Ratio(gens.Traceflake, gens.Default).Left < 2 {
			t.Errorf("%+v: %+v", c, costs[c])
		}
	}
	if report := costs.Report(); strings.Count(report, "\n| ") != len(Cells())+1 {
		t.Error(report)
	}
}
