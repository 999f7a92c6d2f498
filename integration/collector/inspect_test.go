package collector

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// fill writes a line into the page at a time, and returns how many kinds the page then shows.
const fill = `((line, now) => {
	Date.now = () => now;
	document.getElementById("line").value = line;
	document.getElementById("line").dispatchEvent(new Event("input"));
	document.querySelectorAll("details").forEach((e) => { e.open = true; });
	return [...document.querySelectorAll("#found h3")]
		.filter((e) => e.textContent !== "The same in other forms").length;
})(%s, %d)`

// The page docs/inspect.html shows as many kinds as traceflake inspect; clients/js tests which
// ones. It loads nothing, fits a small window, and its inputs have labels.
func TestInspectPage(t *testing.T) {
	var vectors struct {
		NowMS int64 `json:"now_ms"`
		Lines []struct {
			Line  string
			Found []struct{ Kind string }
		}
	}
	if err := json.Unmarshal([]byte(child.Read(t, "testdata/inspect.json")),
		&vectors); err != nil || len(vectors.Lines) == 0 {
		t.Fatalf("%d lines, %v", len(vectors.Lines), err)
	}
	page := "file://" + filepath.Join(child.Repository, "docs/inspect.html")
	tab := openBrowser(t, page)
	if err := chromedp.Do(tab, chromedp.EmulateViewport(320, 700)); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors.Lines {
		script := fmt.Sprintf(fill, must(json.Marshal(v.Line)), vectors.NowMS)
		if got := value[int](t, tab, script); got != len(v.Found) {
			t.Errorf("%s: the page shows %d kinds, want %d", v.Line, got, len(v.Found))
		}
		if width := value[int](t, tab, "document.documentElement.scrollWidth"); width > 320 {
			t.Errorf("%s: %d pixels wide in a window of 320", v.Line, width)
		}
	}
	for _, script := range []string{
		`performance.getEntriesByType("resource").length === 0`,
		`[...document.querySelectorAll("input, textarea")].every((e) => e.labels.length === 1)`,
		`document.querySelectorAll("h1").length === 1 && document.documentElement.lang === "en"`,
		`fetch("http://127.0.0.1:9").then(() => false, () => true)`,
	} {
		if !value[bool](t, tab, script) {
			t.Errorf("%s is false", script)
		}
	}

	// Any address is read, and the values can be selected with the keyboard alone.
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for hash, want := range map[string]string{"%": "%", "%zz" + id: "%zz" + id,
		"trace%20" + id: "trace " + id} {
		tab := openBrowser(t, page+"#"+hash)
		if got := value[string](t, tab, `document.getElementById("line").value`); got != want {
			t.Errorf("#%s: the input is %q, want %q", hash, got, want)
		}
		value[bool](t, tab, fmt.Sprintf(`new Promise((done) => {
			addEventListener("hashchange", () => done(true), { once: true });
			location.hash = "%s";
		})`, id))
		value[bool](t, tab, `document.getElementById("line").focus() === undefined`)
		err := chromedp.Do(tab, chromedp.KeyEvent("\t"))
		selected := value[string](t, tab, "String(getSelection())")
		if err != nil || selected != id {
			t.Errorf("#%s: Tab selects %q, %v", hash, selected, err)
		}
	}
}
