package collector

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// fill writes a line into the page at a time, and returns the kinds that the page then shows.
const fill = `(({ line, snowflake }, now) => {
	Date.now = () => now;
	document.getElementById("line").value = line;
	document.getElementById("layout").value = snowflake ?? "";
	document.getElementById("line").dispatchEvent(new Event("input"));
	document.querySelectorAll("details").forEach((e) => { e.open = true; });
	return [...document.querySelectorAll("#found h3")].map((e) => e.textContent)
		.filter((text) => text !== "The same in other forms");
})(%s, %d)`

// The page docs/inspect.html shows the kinds that traceflake inspect does. It loads nothing, is not
// wider than a small window, and its inputs have labels.
func TestInspectPage(t *testing.T) {
	text, err := os.ReadFile("../../testdata/inspect.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		NowMS int64 `json:"now_ms"`
		Lines []json.RawMessage
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Lines) == 0 {
		t.Fatalf("%d lines, %v", len(vectors.Lines), err)
	}
	page, err := filepath.Abs("../../docs/inspect.html")
	if err != nil {
		t.Fatal(err)
	}
	tab := openBrowser(t, "file://"+page)
	if err := chromedp.Do(tab, chromedp.EmulateViewport(320, 700)); err != nil {
		t.Fatal(err)
	}
	for _, line := range vectors.Lines {
		var v struct{ Found []struct{ Kind string } }
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, found := range v.Found {
			want = append(want, found.Kind)
		}
		got := value[[]string](t, tab, fmt.Sprintf(fill, line, vectors.NowMS))
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: the page shows %q, want %q", line, got, want)
		}
		if width := value[int](t, tab, "document.documentElement.scrollWidth"); width > 320 {
			t.Errorf("%s: %d pixels wide in a window of 320", line, width)
		}
	}
	problem := `(() => {
		const layout = document.getElementById("layout");
		layout.value = "nope";
		layout.dispatchEvent(new Event("input"));
		return layout.getAttribute("aria-invalid") + " " + document.querySelector("[role=alert]").textContent;
	})()`
	if got := value[string](t, tab, problem); !strings.HasPrefix(got, "true The epoch is not") {
		t.Errorf("a wrong layout: %q", got)
	}
	for script, want := range map[string]bool{
		`performance.getEntriesByType("resource").length === 0`:                                  true,
		`[...document.querySelectorAll("input, textarea")].every((e) => e.labels.length === 1)`:  true,
		`document.querySelectorAll("h1").length === 1 && document.documentElement.lang === "en"`: true,
		`fetch("http://127.0.0.1:9").then(() => true, () => false)`:                              false,
	} {
		if got := value[bool](t, tab, script); got != want {
			t.Errorf("%s is %v", script, got)
		}
	}
}
