package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/traceid"
)

// go test ./integration/demo -run TestScreenshots -screenshots ../../docs
var screenshots = flag.String("screenshots", "", "save screenshots of the page in this `folder`")

// browser is a headless Chromium with one tab.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []*network.Request
	faults   []string // exceptions and violations of the content security policy
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "google-chrome", "google-chrome-stable", "chromium-browser"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	switch {
	case path == "" && os.Getenv("CI") == "":
		t.Skip("Chromium is not on the PATH (Debian: apt-get install chromium)")
	case path == "":
		t.Fatal("Chromium is not on the PATH (Debian: apt-get install chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.WindowSize(width, height))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request)
		case *runtime.EventExceptionThrown:
			b.faults = append(b.faults, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork { // the page polls for traces that are not stored yet
				b.faults = append(b.faults, e.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height))
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	return b
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func result[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// value evaluates a script.
func value[T any](b *browser, script string) T {
	b.t.Helper()
	return result(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// call sends a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// texts returns the text of each element that the selector matches.
func (b *browser) texts(selector string) []string {
	b.t.Helper()
	return value[[]string](b, fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.textContent)", selector))
}

// press moves the focus to an element with the tab key and presses a key there.
func (b *browser) press(selector, key string) {
	b.t.Helper()
	for range 60 {
		b.do(chromedp.KeyEvent("\t"))
		if value[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			b.do(chromedp.KeyEvent(key))
			return
		}
	}
	b.t.Fatalf("%s cannot be reached with the tab key", selector)
}

// opened waits until the location matches and returns the first group.
func (b *browser) opened(pattern string) string {
	b.t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		url := result(b, chromedp.Location())
		state, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.readyState")) // fails during a navigation
		if m := regexp.MustCompile(pattern).FindStringSubmatch(url); m != nil && err == nil && state == "complete" {
			return m[len(m)-1]
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.t.Fatalf("no page matches %s; the status is %q", pattern, b.texts("#status"))
	return ""
}

const width, height = 1160, 900 // of the window

// picture saves a screenshot of the whole page as a PNG with a palette, if -screenshots is set.
func (b *browser) picture(name string, width int64) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	b.do(chromedp.EmulateViewport(width, height))
	b.do(chromedp.EmulateViewport(width, value[int64](b, "document.documentElement.scrollHeight")))
	full, err := png.Decode(bytes.NewReader(result(b, chromedp.CaptureScreenshot())))
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height))
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, reduce(full)); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name), out.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// reduce converts an image to a palette. It repeatedly adds the colour that the palette so far
// represents worst, weighted by how common the colour is.
func reduce(full image.Image) image.Image {
	out := image.NewPaletted(full.Bounds(), nil)
	badness := make(map[color.RGBA]float64) // the number of pixels, later times their distance from the palette
	at := func(i int) color.RGBA {
		return color.RGBAModel.Convert(full.At(i%out.Stride, i/out.Stride)).(color.RGBA)
	}
	for i := range out.Pix {
		badness[at(i)]++
	}
	counts := maps.Clone(badness)
	for len(out.Palette) < min(len(counts), 256) {
		var worst color.RGBA
		for c, b := range badness {
			if b > badness[worst] {
				worst = c
			}
		}
		out.Palette = append(out.Palette, worst)
		for c, n := range counts {
			r, g, b := float64(c.R)-float64(worst.R), float64(c.G)-float64(worst.G), float64(c.B)-float64(worst.B)
			if off := n * (r*r + g*g + b*b); len(out.Palette) == 1 || off < badness[c] {
				badness[c] = off
			}
		}
	}
	index := make(map[color.RGBA]uint8, len(counts))
	for c := range counts {
		index[c] = uint8(out.Palette.Index(c))
	}
	for i := range out.Pix {
		out.Pix[i] = index[at(i)]
	}
	return out
}

// TestScreenshots takes the screenshots for docs, of a page with a history.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots is not set")
	}
	use(t, servers.ClickHouseForTest(t), nil)
	demo := startDemo(t, "-history", "1000000", "-requests", "120")
	b := openBrowser(t)
	id := demo.find(`trace ([0-9a-f]{32}), `)
	b.do(chromedp.Navigate(demo.page))
	b.picture("page-list.png", width)
	b.do(chromedp.Navigate(demo.page + "/search?service=orders&shortest=3&within=1h"))
	b.picture("page-search.png", width)
	b.do(chromedp.Navigate(demo.page+"/traces/"+id), chromedp.Click("//summary[contains(., 'publish order.created')]"))
	b.picture("page-trace.png", width)
	b.scheme("dark")
	b.picture("page-dark.png", width)
	b.picture("page-narrow.png", 400)
	demo.end()
}

func TestBrowser(t *testing.T) {
	engine := servers.ClickHouseForTest(t)
	b := openBrowser(t)
	use(t, engine, nil)
	demo := startDemo(t, "-requests", "66")
	database := demo.find(`database (\S+)`)

	t.Run("list", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(demo.page))
		var ids []string
		for _, rows := range []int{20, 20, 20, 4} { // 66 requests, 2 of them not sampled
			got := b.texts(".list tbody code")
			if len(got) != rows {
				t.Fatalf("%d rows, want %d", len(got), rows)
			}
			if ids = append(ids, got...); rows == 20 {
				b.press("a[rel=next]", "\r")
				b.opened(`before=` + got[19])
			}
		}
		if !slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) || len(slices.Compact(ids)) != 64 {
			t.Errorf("want each trace once, in the order of IDs:\n%s", strings.Join(ids, "\n"))
		}
		if next := b.texts("a[rel=next]"); len(next) != 0 {
			t.Error("the last page links to a next one")
		}
	})

	t.Run("waterfall", func(t *testing.T) {
		b.t = t
		b.do(chromedp.Navigate(demo.page))
		row := `tr[contains(., "/checkout")]`
		if len(b.texts(".list strong.error")) > 0 {
			row = "tr[.//strong]" // a trace with an error shows more
		}
		b.do(chromedp.Click("//" + row + "//a"))
		id := b.opened(`/traces/([0-9a-f]{32})$`)
		names := b.texts(".waterfall .name")
		if len(names) != 15 || names[0] != "POST /checkout" || names[14] != "render receipt" {
			t.Errorf("spans %q", names)
		}
		if got := b.texts(".whole code"); len(got) != 1 || got[0] != id {
			t.Errorf("the page shows the ID %q, want %s", got, id)
		}
		main := strings.Join(b.texts("main"), "")
		for _, want := range []string{`15 spans in \d+\.\d\d ms`, `the first span began -?\d+\.\d\d ms later`, `granules\s+\d+\s+\d+`} {
			if !regexp.MustCompile(want).MatchString(main) {
				t.Errorf("no %q in the page", want)
			}
		}
		// The bars are drawn, in the colours of two services, each inside its parent's.
		type box struct{ Left, Right, Top float64 }
		bars := value[[]box](b, "[...document.querySelectorAll('.waterfall rect')].map(r => r.getBoundingClientRect()).map(r => ({Left: r.left, Right: r.right, Top: r.top}))")
		for i, bar := range bars {
			if bar.Right <= bar.Left || bar.Left < bars[0].Left-1 || bar.Right > bars[0].Right+1 || i > 0 && bar.Top <= bars[i-1].Top {
				t.Errorf("bar %d of %v is out of place", i, bars)
			}
		}
		if fills := value[[]string](b, "[...new Set([...document.querySelectorAll('.waterfall details:not(.failed) rect')].map(r => getComputedStyle(r).fill))]"); len(bars) != 15 || len(fills) != 2 {
			t.Errorf("%d bars in the colours %q", len(bars), fills)
		}
	})

	var started string
	t.Run("request", func(t *testing.T) {
		b.t = t
		if demo.page == demo.edge {
			t.Fatal("page and edge have the same origin")
		}
		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("#start"), chromedp.Click("#start button"))
		started = b.opened(`/traces/([0-9a-f]{32})$`)
		checkOwnTrace(t, b, engine, database, demo, started)

		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("#start"), chromedp.SetValue("#route", "GET /orders/latest"))
		b.press("#start button", " ")
		second := b.opened(`/traces/([0-9a-f]{32})$`)
		if spans := b.texts(".waterfall .name"); len(spans) != 8 || second <= started {
			t.Errorf("the second trace %s after %s has the spans %q", second, started, spans)
		}
		b.do(chromedp.Navigate(demo.page))
		if newest := b.texts(".list tbody code"); newest[0] != second || newest[1] != started {
			t.Errorf("the list begins with %q, want %s and %s", newest[:2], second, started)
		}
	})

	t.Run("client", func(t *testing.T) {
		b.t = t
		checkClient(t, b, engine, database, demo)
	})

	t.Run("details", func(t *testing.T) {
		b.t = t
		checkDetails(t, b, demo.page, started)
	})

	t.Run("search", func(t *testing.T) {
		b.t = t
		checkSearch(t, b, demo.page)
	})

	t.Run("copy", func(t *testing.T) {
		b.t = t
		call(b, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Origin: demo.page, Setting: cdpbrowser.PermissionSettingGranted,
			Permission: &cdpbrowser.PermissionDescriptor{Name: "clipboard-read"}})
		b.do(chromedp.Navigate(demo.page+"/traces/"+started), chromedp.Click(".whole button.copy"))
		b.eventually("document.getElementById('said').textContent", "Copied "+started)
		if got := value[string](b, "navigator.clipboard.readText()"); got != started {
			t.Errorf("the clipboard holds %q, want %s", got, started)
		}
	})

	t.Run("narrow, by keyboard", func(t *testing.T) {
		b.t = t
		checkOperable(t, b, demo.page, started)
	})

	t.Run("accessible", func(t *testing.T) {
		b.t = t
		checkAccessible(t, b, []string{demo.page + "/nowhere", demo.page + "/search?service=nobody",
			demo.page + "/search?service=orders", demo.page, demo.page + "/traces/" + started})
	})

	t.Run("dark and narrow", func(t *testing.T) {
		b.t = t
		b.scheme("dark")
		b.do(chromedp.Navigate(demo.page + "/traces/" + started))
		if ground := value[string](b, "getComputedStyle(document.body).backgroundColor"); ground != "rgb(20, 24, 29)" {
			t.Errorf("the background is %s in dark mode", ground)
		}
		b.do(chromedp.EmulateViewport(320, 700))
		for _, at := range []string{"/", "/traces/" + started} {
			b.do(chromedp.Navigate(demo.page + at))
			if wide := value[int](b, "document.documentElement.scrollWidth"); wide > 320 {
				t.Errorf("%s is %d pixels wide on a screen of 320", at, wide)
			}
		}
		b.do(chromedp.EmulateViewport(width, height))
		b.scheme("")
	})

	t.Run("without script", func(t *testing.T) {
		b.t = t
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("noscript p"),
			chromedp.WaitNotVisible("#start"), chromedp.SendKeys("#id", " "+strings.ToUpper(started)+"\r"))
		b.do(chromedp.WaitVisible(".waterfall"), chromedp.WaitVisible("rect"), chromedp.WaitNotVisible("button.copy"))
		b.do(chromedp.Click("summary"), chromedp.WaitVisible(".pairs"))
		b.do(chromedp.Navigate(demo.page), chromedp.SendKeys("#service", "orders\r"), chromedp.WaitVisible(`.search input[value=orders]`))
		if url := result(b, chromedp.Location()); !strings.Contains(url, "/search?service=orders") {
			t.Errorf("the search leads to %s", url)
		}
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})
	})

	if log := demo.end(); !strings.Contains(log, " 0 lost") {
		t.Errorf("spans were lost:\n%s", log)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Errorf("the browser reports: %s", fault)
	}
}

// checkOwnTrace checks that a trace has the ID that the browser made and sent, and that it has the
// spans of both services.
func checkOwnTrace(t *testing.T, b *browser, engine *servers.Engine, database string, demo *demo, id string) {
	t.Helper()
	made, err := trace.TraceIDFromHex(id)
	if err != nil || !traceid.Plausible(made, time.Now(), time.Minute, time.Second) {
		t.Errorf("the browser's ID %s: made %s, %v", id, traceid.Time(made), err)
	}
	var sent network.Headers
	b.mu.Lock()
	for _, r := range b.requests {
		if r.Method == "POST" && r.URL == demo.edge+"/checkout" {
			sent = r.Headers
		}
	}
	b.mu.Unlock()
	header := func(name string) string {
		for key, v := range sent {
			if strings.EqualFold(key, name) {
				return fmt.Sprint(v)
			}
		}
		return ""
	}
	if header("x-trace-id") != id || header("x-b3-traceid") != id || header("x-b3-sampled") != "1" {
		t.Errorf("the browser sent %v for trace %s", sent, id)
	}
	r, err := engine.Query(t.Context(), fmt.Sprintf(
		"SELECT countIf(ServiceName = 'edge'), countIf(ServiceName = 'orders'), anyIf(ParentSpanId, SpanKind = 'Server' AND ServiceName = 'edge') FROM %s.otel_traces WHERE TraceId = '%s'",
		database, id))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(r.Rows[0], " "), "6 9 "+header("x-b3-spanid"); got != want {
		t.Errorf("spans of edge, of orders, parent: %q, want %q", got, want)
	}
	if decoded := b.texts(".b64 dd"); len(decoded) != 1 || !strings.HasPrefix(decoded[0], "nothing: ") {
		t.Errorf("the page describes the browser's random low half as %q", decoded)
	}
}
