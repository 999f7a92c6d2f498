package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/traceid"
)

// inNode runs a program in the folder of an npm package, with its dependencies, and returns its
// output.
func inNode(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err != nil && name != "npm" {
		inNode(t, folder, "npm", "ci", "--loglevel=error")
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s (needs Node 20 and npm): %v\n%s", cmd, err, problems.String())
	}
	return string(out)
}

const jsClient = "../../clients/js"

// sent is a request of a JavaScript client within a root span.
type sent struct {
	Trace, Span, Child, Response string
	NotBefore                    int64
}

// checkClient runs the JavaScript client with OpenTelemetry's SDKs in this browser and in Node: its
// vectors, its order, and traces from both through the services into ClickHouse.
func checkClient(t *testing.T, b *browser, engine *servers.Engine, database string, demo *demo) {
	t.Helper()
	b.do(chromedp.Navigate(demo.page))
	value[bool](b, inNode(t, jsClient, "node_modules/.bin/esbuild", "test/browser.js", "--bundle", "--format=iife")+"; true")

	vectors, err := os.ReadFile("../../testdata/format.json")
	if err != nil {
		t.Fatal(err)
	}
	if failed := value[string](b, fmt.Sprintf("client.vectors(%s)", vectors)); failed != "" {
		t.Errorf("a vector that does not hold: %s", failed)
	}

	before := time.Now().Truncate(time.Millisecond)
	roots := value[[]string](b, "client.roots(1000)")
	if !slices.IsSorted(roots) || len(slices.Compact(roots)) != 1000 {
		t.Error("1000 root spans are not in the order of their trace IDs")
	}
	for _, text := range []string{roots[0], roots[999]} {
		id, err := trace.TraceIDFromHex(text)
		if at := traceid.Time(id); err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s is of %s, not of this moment: %v", text, at, err)
		}
	}

	url := demo.edge + "/orders/latest"
	fromBrowser := value[sent](b, fmt.Sprintf("client.request(%q)", url))
	var fromNode sent
	if err := json.Unmarshal([]byte(inNode(t, jsClient, "node", "test/node.js", url)), &fromNode); err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(url) // its root is in Go
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	fromGo := r.Header.Get("x-trace-id")
	b.do(chromedp.Navigate(demo.page + "/traces/" + fromBrowser.Trace)) // stores what is pending
	if names := b.texts(".waterfall .name"); len(names) != 7 {
		t.Errorf("found by its ID, the trace has the spans %q", names)
	}

	for _, s := range []sent{fromBrowser, fromNode} {
		if s.Child != s.Trace || s.Response != s.Trace || s.Trace <= roots[999] {
			t.Errorf("the spans and the response disagree about the trace: %+v", s)
		}
		stored := engine.Rows(t, fmt.Sprintf(
			`SELECT count(), countIf(ParentSpanId = '%s'), countIf(Timestamp >= fromUnixTimestamp64Milli(%d)) FROM %s.otel_traces WHERE TraceId = '%s'`,
			s.Span, s.NotBefore, database, s.Trace))
		if got := strings.Join(stored[0], " "); got != "7 1 7" {
			t.Errorf("of %+v, spans stored, children of the client's, and those not before its bound: %s", s, got)
		}
	}
	// By their time, the three are found together and in their order.
	found := engine.Rows(t, fmt.Sprintf(
		`SELECT DISTINCT TraceId FROM %s.otel_traces WHERE TraceId BETWEEN traceIDMin(traceIDTime('%s')) AND traceIDMax(now64(3)) ORDER BY TraceId`,
		database, fromBrowser.Trace))
	if got, want := fmt.Sprint(found), fmt.Sprintf("[[%s] [%s] [%s]]", fromBrowser.Trace, fromNode.Trace, fromGo); got != want {
		t.Errorf("found by time: %s, want those of the browser, Node and Go: %s", got, want)
	}
	checkRoots(t, engine, database)
}

// checkRoots runs the query of docs/roots.md. Of the demo's roots, those of edge have ordered IDs.
func checkRoots(t *testing.T, engine *servers.Engine, database string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/roots.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, _ := strings.Cut(string(text), "```sql\n")
	sql, _, _ = strings.Cut(sql, "```")
	roots := engine.Rows(t, strings.Replace(sql, "FROM otel_traces", "FROM "+database+".otel_traces", 1))
	if len(roots) != 1 || roots[0][0] != "edge" || roots[0][1] == "0" || roots[0][1] != roots[0][2] {
		t.Errorf("the roots of each service, and the ordered ones: %v", roots)
	}
}
