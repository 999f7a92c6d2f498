package builds

import (
	"encoding/json"
	"io"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/bench/internal/child"
)

// The builds must differ from the first one; otherwise the same code would be measured twice.
func TestBuildsDiffer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program three times")
	}
	all, err := Measure(t.Context(), io.Discard, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		if math.IsNaN(float64(f.NewIDs + f.NewSpanID + f.Block)) {
			t.Skip("the machine is too busy: ", Builds[i].What)
		}
		if f.NewIDs <= 0 || f.NewSpanID <= 0 || f.Block <= 0 {
			t.Errorf("%s: %+v", Builds[i].What, f)
		}
	}
	if all[0].Cipher != Cipher() || HasAVX512() && all[1].Cipher != "AVX2" || all[2].Cipher != "portable" {
		t.Errorf("%+v", all)
	}
	if all[2].Cipher != all[0].Cipher && all[2].Block < 2*all[0].Block {
		t.Errorf("portable code takes %g ns a block, assembly %g", all[2].Block, all[0].Block)
	}
	if text := Report(all); strings.Contains(text, "NaN") {
		t.Error(text)
	}
}

func TestNumberSurvivesJSON(t *testing.T) {
	b, err := json.Marshal(Figures{Draw: Number(math.NaN()), Block: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	var f Figures
	if err := json.Unmarshal(b, &f); err != nil || !math.IsNaN(float64(f.Draw)) || f.Block != 1.5 {
		t.Errorf("%s decodes to %+v, %v", b, f, err)
	}
	if text := Report([]Figures{f}); !strings.Contains(text, "| – | 1.5 ns |") {
		t.Error(text)
	}
}

// A build tag that no file mentions would leave nothing out.
func TestTagsChooseOtherFiles(t *testing.T) {
	files := func(tags, folder string) string {
		const format = "{{.GoFiles}} {{.SFiles}}"
		out, err := child.Output(exec.CommandContext(t.Context(), "go", "list", "-tags", tags, "-f", format, folder))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for tag, folder := range map[string]string{"purego": "../../sparx64", "nolinkname": "../../idgen"} {
		if with := files(tag, folder); with == files("", folder) {
			t.Errorf("the tag %s changes nothing in %s: %s", tag, folder, with)
		}
	}
}
