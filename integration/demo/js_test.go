package main

import (
	"encoding/json"
	"fmt"
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

// bundle is the JavaScript client with OpenTelemetry's SDK for browsers, as one script.
func bundle(t *testing.T) string {
	t.Helper()
	const folder = "../../clients/js"
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = folder
		var problems strings.Builder
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s (needs Node 20 and npm): %v\n%s", cmd, err, problems.String())
		}
		return string(out)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err != nil {
		run("npm", "ci", "--loglevel=error")
	}
	return run("node_modules/.bin/esbuild", "test/browser.js", "--bundle", "--format=iife")
}

// checkClient runs the JavaScript client with OpenTelemetry's SDK for browsers in this browser: its
// vectors, its order, and a trace from the browser through the services into ClickHouse.
func checkClient(t *testing.T, b *browser, engine *servers.Engine, database string, demo *demo) {
	t.Helper()
	b.do(chromedp.Navigate(demo.page))
	value[bool](b, bundle(t)+"; true")

	vectors, err := os.ReadFile("../../testdata/format.json")
	if err != nil {
		t.Fatal(err)
	}
	if failed := value[[]json.RawMessage](b, fmt.Sprintf("client.vectors(%s)", vectors)); len(failed) > 0 {
		t.Errorf("vectors that do not hold: %s", failed)
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

	sent := value[struct {
		Trace, Span, Child, Response string
		NotBefore                    int64
	}](b, fmt.Sprintf("client.request(%q)", demo.edge+"/orders/latest"))
	if sent.Child != sent.Trace || sent.Response != sent.Trace || sent.Trace <= roots[999] {
		t.Errorf("the spans and the response disagree about the trace: %+v", sent)
	}
	b.do(chromedp.Navigate(demo.page + "/traces/" + sent.Trace)) // stores what is pending
	r, err := engine.Query(t.Context(), fmt.Sprintf(
		`SELECT count(), countIf(ParentSpanId = '%s'), countIf(Timestamp >= fromUnixTimestamp64Milli(%d)) FROM %s.otel_traces WHERE TraceId = '%s'`,
		sent.Span, sent.NotBefore, database, sent.Trace))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Rows[0], " "); got != "8 1 8" {
		t.Errorf("spans stored, children of the browser's, and those not before its bound: %s", got)
	}
	if names := b.texts(".waterfall .name"); len(names) != 8 {
		t.Errorf("found by its ID, the trace has the spans %q", names)
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
	r, err := engine.Query(t.Context(), strings.Replace(sql, "FROM otel_traces", "FROM "+database+".otel_traces", 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 || r.Rows[0][0] != "edge" || r.Rows[0][1] == "0" || r.Rows[0][1] != r.Rows[0][2] {
		t.Errorf("the roots of each service, and the ordered ones: %v", r.Rows)
	}
}
