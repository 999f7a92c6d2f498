package pruning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

// engineFolder is the folder where make puts engines.
const engineFolder = "../../.cache/duckdb"

func TestOrderReducesReads(t *testing.T) {
	engine, err := filepath.Abs(engineFolder)
	if err != nil {
		t.Fatal(err)
	}
	if err := fetch(t.Context(), engine); err != nil {
		t.Fatal(err)
	}
	c, err := measure(t.Context(), t.Output(), servers.PostgresForTest(t).DSN(), engine, 400_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 3 || c.Spans != 400_000 {
		t.Fatalf("%+v", c)
	}
	random := c.Rows[0]
	if random.OnePages < random.Pages*9/10 || random.OneGroups != random.Groups {
		t.Errorf("random IDs have no order, but queries read less: %+v", random)
	}
	for _, r := range c.Rows[1:] {
		if r.OnePages > r.Pages/4 || r.OneGroups > 2 || r.WindowPages > r.Pages/4 || r.OneBytes > r.Bytes/2 {
			t.Errorf("ordered IDs did not reduce what queries read: %+v", r)
		}
	}
	for _, r := range c.Rows {
		if r.WindowPages > r.Pages/2 || r.WindowGroups > r.Groups/2+1 || r.BRIN > r.BTree/10 {
			t.Errorf("%+v", r)
		}
	}
	t.Log("\n" + c.Report())
	file := filepath.Join(t.TempDir(), "pruning.svg")
	if err := c.Plot(file); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "traceflake", "UUIDv7", "PostgreSQL"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the plot", want)
		}
	}
}

// The spans are the same for every kind of ID, in the order of their ends.
func TestArrival(t *testing.T) {
	spans := arrival(1000)
	count := make(map[int]int)
	for i, s := range spans {
		count[s.trace]++
		if i > 0 && s.ms < spans[i-1].ms {
			t.Fatalf("span %d ends before the previous one", i)
		}
		if at := begin(s.trace, 1000).UnixMilli(); s.ms < at {
			t.Errorf("span %d ends before its trace begins", i)
		}
	}
	for trace, n := range count {
		if n != perTrace {
			t.Errorf("%d spans of trace %d", n, trace)
		}
	}
}
