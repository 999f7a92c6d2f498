package main

import (
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/bench/builds"
	"github.com/traceflake/traceflake/bench/idle"
	"github.com/traceflake/traceflake/bench/internal/child"
	"github.com/traceflake/traceflake/bench/sharing"
)

func TestMain(m *testing.M) {
	child.Main(idle.Jobs())
	os.Exit(m.Run())
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		line    line
		verdict string
	}{
		{line{got: 1.05, most: 1.05, loud: 0.05}, "met"},
		{line{got: 1.054, most: 1.05, loud: 0.05}, "met"},
		{line{got: 1.06, most: 1.05, loud: 0.05}, "missed by 0.01"},
		{line{got: 1.06, most: 1.05, noise: 0.01, loud: 0.05}, "met within the noise"},
		{line{got: 1.06, most: 1.05, noise: 0.009, loud: 0.05}, "met within the noise"},
		{line{got: 1.07, most: 1.05, noise: 0.01, loud: 0.05}, "missed by 0.02"},
		{line{got: 0.99, most: 1.05, noise: 0.06, loud: 0.05}, "met"},
		{line{got: 1, most: 1.05, noise: 0.06, loud: 0.05}, "not measured: the default differs too much from itself"},
		{line{got: 1.11, most: 1.05, noise: 0.06, loud: 0.05}, "not measured: the default differs too much from itself"},
		{line{got: 1.12, most: 1.05, noise: 0.06, loud: 0.05}, "missed by 0.07"},
		{line{got: 1.12, most: 1.05, noise: 0.06, loud: 0.05, why: "no result"}, "not measured: no result"},
		{line{got: 75.5, most: 70, unit: " ns", loud: 20}, "missed by 5.5 ns"},
		{line{got: 0, most: 0}, "met"},
		{line{got: 0.01, most: 0}, "missed by 0.01"},
		{line{got: 2.01, most: 2, unit: " %"}, "missed by 0.01 %"},
		{line{got: math.NaN(), most: 1}, "not measured: too few turns had their CPUs"},
		{line{got: 1, most: 1, noise: math.NaN(), loud: 0.05}, "not measured: too few turns had their CPUs"},
		{line{most: 1, why: "no result"}, "not measured: no result"},
	} {
		if got := c.line.verdict(); got != c.verdict {
			t.Errorf("%+v: verdict %q, want %q", c.line, got, c.verdict)
		}
		met := strings.HasPrefix(c.verdict, "met")
		if err := judgement([]line{{}, c.line}); c.line.met() != met || (err == nil) != met {
			t.Errorf("%+v: met is %t, and the check returns %v", c.line, c.line.met(), err)
		}
	}
}

// A target without a measurement must not pass as met.
func TestWithoutFiguresEveryTargetIsMissed(t *testing.T) {
	for _, l := range lines(figures{}) {
		if l.met() && l.most != 0 && !strings.HasPrefix(l.what, "timers") {
			t.Errorf("%+v", l)
		}
	}
	if err := judgement(lines(figures{})); err == nil {
		t.Error("nothing was measured, but every target counts as met")
	}
}

func TestEveryTargetIsMeasured(t *testing.T) {
	p := short
	p.rounds = 1
	f, err := measureTargets(t.Context(), t.Output(), p)
	if err != nil {
		t.Fatal(err)
	}
	ls := lines(f)
	if len(ls) != 17 {
		t.Errorf("%d targets:\n%s", len(ls), table(ls))
	}
	for _, l := range ls {
		if l.why != "" && runtime.GOMAXPROCS(0) > 1 {
			t.Errorf("%s: %s", l.what, l.why)
		}
	}
	if more := ls[0].most - 1.05; (more > 0.1) == builds.HasAVX512() {
		t.Errorf("the allowance is %g with AVX-512 %t", more, builds.HasAVX512())
	}
	t.Log("\n" + table(ls))
}

func TestSharedLinesAreHeld(t *testing.T) {
	for shared, met := range map[int]bool{0: true, 2: true, 3: false, 100: false} {
		for _, l := range lines(figures{sharing: sharing.Costs{Counts: []sharing.Count{{What: "NewIDs", Calls: 100, Shared: shared}}}}) {
			if strings.Contains(l.what, "write a line") && l.met() != met {
				t.Errorf("%d of 100 calls: %s", shared, l.verdict())
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-only nonsense":     `no section "nonsense", only rates,`,
		"rates":              `unexpected argument "rates"`,
		"-check -short":      "takes neither -short",
		"-check -only rates": "takes neither -short",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestHeadDescribesTheRun(t *testing.T) {
	r, err := gather(t.Context(), short, []string{"sharing"})
	if err != nil {
		t.Fatal(err)
	}
	text := r.markdown()
	for _, want := range []string{`\| CPU \| .+ in use`, `\| Go \| go1\.`, `\| commit \| [0-9a-f]{12}`, `\| command \| .go run \.`, `load average`, `## Shared lines`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "## Targets") || strings.Contains(text, "## Rivals") {
		t.Errorf("it has sections that were not measured:\n%s", text)
	}
}
