package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/traceid"
)

// browser is a headless Chromium with one tab.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // exceptions and violations of the content security policy
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

// scheme sets the colour scheme that the browser prefers.
func (b *browser) scheme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// TestScreenshots takes the screenshots of the page with a history: make screenshots.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("TRACEFLAKE_SCREENSHOTS")
	if folder == "" {
		t.Skip("TRACEFLAKE_SCREENSHOTS, the folder for them, is not set")
	}
	use(t, servers.ClickHouseForTest(t), nil)
	demo := startDemo(t, "-history", "1000000", "-requests", "120")
	b := openBrowser(t)
	for name, path := range map[string]string{"page-list.png": "/", "page-trace.png": "/traces/" + demo.find(`trace ([0-9a-f]{32}), `)} {
		b.do(chromedp.Navigate(demo.page + path))
		b.do(chromedp.EmulateViewport(width, value[int64](b, "document.querySelector('main').getBoundingClientRect().bottom | 0")))
		if err := os.WriteFile(filepath.Join(folder, name), result(b, chromedp.CaptureScreenshot()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	demo.end()
}

func TestBrowser(t *testing.T) {
	engine := servers.ClickHouseForTest(t)
	b := openBrowser(t)
	use(t, engine, nil)
	demo := startDemo(t, "-requests", "64")
	database := demo.find(`database (\S+)`)
	play := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			b.t = t
			f(t)
		})
	}

	play("list", func(t *testing.T) {
		b.do(chromedp.Navigate(demo.page))
		var ids []string
		for _, rows := range []int{20, 20, 20, 4} {
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

	var started string
	play("request", func(t *testing.T) {
		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("#start"), chromedp.Click("#start button"))
		started = b.opened(`/traces/([0-9a-f]{32})$`)
		if id, err := trace.TraceIDFromHex(started); err != nil || !traceid.Plausible(id, time.Now(), time.Minute, time.Second) {
			t.Errorf("the browser's ID %s: of %s, %v", started, traceid.Time(id), err)
		}
		// Edge took the ID from the browser and passed it on to orders.
		if spans := b.texts(".waterfall .name"); len(spans) != 12 || spans[4] != "POST /orders" {
			t.Errorf("the spans are %q", spans)
		}
		if decoded := b.texts(".b64 dd"); len(decoded) != 1 || !strings.HasPrefix(decoded[0], "nothing: ") {
			t.Errorf("the page describes the browser's random low half as %q", decoded)
		}

		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("#start"), chromedp.SetValue("#route", "GET /orders/latest"))
		b.press("#start button", " ")
		second := b.opened(`/traces/([0-9a-f]{32})$`)
		if spans := b.texts(".waterfall .name"); len(spans) != 7 || second <= started {
			t.Errorf("the second trace %s after %s has the spans %q", second, started, spans)
		}
		b.do(chromedp.Navigate(demo.page))
		if newest := b.texts(".list tbody code"); newest[0] != second || newest[1] != started {
			t.Errorf("the list begins with %q, want %s and %s", newest[:2], second, started)
		}
	})

	play("waterfall", func(t *testing.T) {
		b.do(chromedp.Navigate(demo.page), chromedp.Click(`//tr[contains(., "/checkout")]//a`))
		id := b.opened(`/traces/([0-9a-f]{32})$`)
		if names := b.texts(".waterfall .name"); len(names) != 12 || names[0] != "POST /checkout" || names[11] != "render receipt" {
			t.Errorf("spans %q", names)
		}
		if got := b.texts(".whole code"); len(got) != 1 || got[0] != id {
			t.Errorf("the page shows the ID %q, want %s", got, id)
		}
		contains(t, strings.Join(b.texts("main"), ""), `12 spans in \d+\.\d\d ms`, `rows read\s*\d+\s*\d+`)
		// The bars are drawn, in the colours of two services, each inside its parent's.
		type box struct{ Left, Right, Top float64 }
		bars := value[[]box](b, "[...document.querySelectorAll('.waterfall rect')].map(r => r.getBoundingClientRect()).map(r => ({Left: r.left, Right: r.right, Top: r.top}))")
		for i, bar := range bars {
			if bar.Right <= bar.Left || bar.Left < bars[0].Left-1 || bar.Right > bars[0].Right+1 || i > 0 && bar.Top <= bars[i-1].Top {
				t.Errorf("bar %d of %v is out of place", i, bars)
			}
		}
		if fills := value[[]string](b, "[...new Set([...document.querySelectorAll('.waterfall rect')].map(r => getComputedStyle(r).fill))]"); len(bars) != 12 || len(fills) != 2 {
			t.Errorf("%d bars in the colours %q", len(bars), fills)
		}
	})

	play("client", func(t *testing.T) { checkClient(t, b, engine, database, demo) })

	play("accessible", func(t *testing.T) {
		checkAccessible(t, b, demo.page+"/traces/nowhere", demo.page, demo.page+"/traces/"+started)
	})

	play("without script", func(t *testing.T) {
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		b.do(chromedp.Navigate(demo.page), chromedp.WaitVisible("noscript p"),
			chromedp.WaitNotVisible("#start"), chromedp.SendKeys("#id", " "+strings.ToUpper(started)+"\r"))
		b.do(chromedp.WaitVisible(".waterfall"), chromedp.WaitVisible("rect"))
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})
	})

	demo.end()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		t.Errorf("the browser reports: %s", fault)
	}
}

// checkAccessible runs every rule of axe-core on each page: light and dark, wide and narrow. A
// narrow screen must not scroll sideways.
func checkAccessible(t *testing.T, b *browser, addresses ...string) {
	inNode(t, "axe", "true") // which fetches it
	axe, err := os.ReadFile("axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	// The page's content security policy does not apply to scripts of the test.
	violations := func() []string {
		value[bool](b, string(axe)+"; true")
		return value[[]string](b, `axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})
			.then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target + ': ' + n.failureSummary)))`)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, wide := range []int64{width, 320} {
			b.do(chromedp.EmulateViewport(wide, height))
			for _, at := range addresses {
				b.do(chromedp.Navigate(at))
				if found := violations(); len(found) > 0 {
					t.Errorf("%s, %s, %d pixels:\n%s", at, scheme, wide, strings.Join(found, "\n"))
				}
				if got := value[int64](b, "document.documentElement.scrollWidth"); got > wide {
					t.Errorf("%s is %d pixels wide on a screen of %d", at, got, wide)
				}
			}
		}
	}
	if ground := value[string](b, "getComputedStyle(document.body).backgroundColor"); ground != "rgb(20, 24, 29)" {
		t.Errorf("the background is %s in dark mode", ground)
	}
	b.scheme("light")
	b.do(chromedp.EmulateViewport(width, height))

	// The rules can fail: text in too light a grey, an image without alternative text.
	value[bool](b, `document.querySelector('main').insertAdjacentHTML('beforeend',
		'<p class="low" id="pale">pale</p><img src="/static/icon.svg">'), document.getElementById('pale').style.color = '#ccc', true`)
	contains(t, strings.Join(violations(), "\n"), "color-contrast: #pale", "image-alt: ")
}
