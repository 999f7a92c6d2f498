package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var (
	//go:embed axe/package.json
	axePackage []byte
	//go:embed axe/package-lock.json
	axeLock []byte
)

// axeScript is axe-core, which npm fetches into .cache once.
func axeScript(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../.cache/axe")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := os.ReadFile(filepath.Join(folder, "fetched.json")); err != nil || !bytes.Equal(done, axeLock) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{"package.json": axePackage, "package-lock.json": axeLock} {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		npm.Dir = folder
		if out, err := npm.CombinedOutput(); err != nil {
			t.Fatalf("fetch axe-core (needs Node 20 and npm): %v\n%s", err, out)
		}
		if err := os.WriteFile(filepath.Join(folder, "fetched.json"), axeLock, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// violations runs every axe rule on the page with all spans open. The page's content security
// policy does not apply to Evaluate.
func (b *browser) violations(axe string) []string {
	b.t.Helper()
	value[bool](b, "document.querySelectorAll('details').forEach(d => { d.open = true; }), true")
	value[bool](b, axe+"; true")
	return value[[]string](b, `axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})
		.then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target + ': ' + n.failureSummary)))`)
}

// checkAccessible runs axe on each page: light and dark, wide and narrow. A narrow screen must not
// scroll sideways.
func checkAccessible(t *testing.T, b *browser, addresses []string) {
	axe := axeScript(t)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, wide := range []int64{width, 400} {
			b.do(chromedp.EmulateViewport(wide, height))
			for _, at := range addresses {
				b.do(chromedp.Navigate(at))
				if found := b.violations(axe); len(found) > 0 {
					t.Errorf("%s, %s, %d pixels:\n%s", at, scheme, wide, strings.Join(found, "\n"))
				}
				if got := value[int64](b, "document.documentElement.scrollWidth"); got > wide {
					t.Errorf("%s is %d pixels wide on a screen of %d", at, got, wide)
				}
			}
		}
	}
	b.scheme("")
	b.do(chromedp.EmulateViewport(width, height))

	// The rules can fail: text in too light a grey, an image without alternative text.
	value[bool](b, `document.querySelector('main').insertAdjacentHTML('beforeend',
		'<p class="low" id="pale">pale</p><img src="/static/icon.svg">'), document.getElementById('pale').style.color = '#ccc', true`)
	found := strings.Join(b.violations(axe), "\n")
	for _, rule := range []string{"color-contrast: #pale", "image-alt: "} {
		if !strings.Contains(found, rule) {
			t.Errorf("axe does not report %s; it reports:\n%s", rule, found)
		}
	}
}

// scheme sets the colour scheme that the browser prefers; "" is its default.
func (b *browser) scheme(name string) {
	b.t.Helper()
	var params emulation.SetEmulatedMediaParams
	if name != "" {
		params.Features = []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}
	}
	call(b, emulation.SetEmulatedMedia, params)
}

// checkOperable operates the page on a narrow screen with the keyboard only.
func checkOperable(t *testing.T, b *browser, page, id string) {
	b.do(chromedp.EmulateViewport(400, 700))
	defer b.do(chromedp.EmulateViewport(width, height))

	b.do(chromedp.Navigate(page), chromedp.WaitVisible("#start"))
	b.press("button.copy", "\r")
	first := b.texts(".list tbody code")[0]
	b.eventually(`document.getElementById('said').textContent`, "Copied "+first)
	b.press("#errors", " ")
	b.press(".search button", "\r")
	if query := b.opened(`/search\?(.*)$`); !strings.Contains(query, "errors=1") {
		t.Errorf("the query %q lacks the ticked box for errors", query)
	}

	b.do(chromedp.Navigate(page + "/traces/" + id))
	b.press("summary", "\r")
	b.eventually("String(document.querySelector('details').open)", "true")
	if hidden := value[[]string](b, `[...document.querySelectorAll('a, button, input, select, summary')].filter(e => {
		const r = e.getBoundingClientRect();
		return !e.matches('.skip') && e.checkVisibility() && (r.width === 0 || r.left < 0 || r.right > 400);
	}).map(e => e.outerHTML)`); len(hidden) > 0 {
		t.Errorf("out of reach on a narrow screen: %q", hidden)
	}
}

// checkDetails opens spans and checks their attributes, events and links.
func checkDetails(t *testing.T, b *browser, page, id string) {
	b.do(chromedp.Navigate(page + "/traces/" + id))
	if open := value[int](b, "document.querySelectorAll('details[open]').length"); open != 0 {
		t.Errorf("%d spans are open before any click", open)
	}
	b.do(chromedp.Click("//summary[contains(., 'publish order.created')]"))
	b.eventually("String(document.querySelectorAll('details[open]').length)", "1")
	text := value[string](b, "document.querySelector('details[open]').innerText")
	for _, want := range []string{"messaging.destination.name", "order.created", "message queued at ", "messaging.message.body.size",
		"Links", "messaging.relation", "Resource", "service.name", "orders", "PRODUCER"} {
		if !strings.Contains(strings.ToUpper(text), strings.ToUpper(want)) {
			t.Errorf("no %q in the opened span:\n%s", want, text)
		}
	}
	b.do(chromedp.Click("details[open] .plain a"))
	if linked := b.opened(`/traces/([0-9a-f]{32})$`); linked == id || len(b.texts(".waterfall summary")) == 0 {
		t.Errorf("the link leads to %s, not to another trace", linked)
	}
}

// checkSearch searches by each field and checks the fields of each row that it finds.
func checkSearch(t *testing.T, b *browser, page string) {
	type row struct {
		Service, Name, Status string
		Took                  float64
	}
	search := func(query string) []row {
		b.do(chromedp.Navigate(page + "/search?" + query))
		return value[[]row](b, `[...document.querySelectorAll('.list tbody tr')].map(r => ({
			Service: r.querySelector('.service').textContent, Name: r.querySelector('.what').lastChild.data.trim(),
			Status: r.querySelector('.errors').textContent, Took: parseFloat(r.querySelector('.took').textContent)}))`)
	}
	for query, ok := range map[string]func(row) bool{
		"service=orders":                 func(r row) bool { return r.Service == "orders" },
		"name=load+prices&within=5m":     func(r row) bool { return r.Name == "load prices" && r.Service == "orders" },
		"service=edge&name=HTTP+POST":    func(r row) bool { return r.Service == "edge" && r.Name == "HTTP POST" },
		"shortest=2.5&name=authenticate": func(r row) bool { return r.Took >= 2.5 },
		"":                               func(row) bool { return true },
	} {
		rows := search(query)
		if len(rows) == 0 && !strings.Contains(query, "shortest") {
			t.Errorf("%q finds nothing", query)
		}
		for _, r := range rows {
			if !ok(r) {
				t.Errorf("%q finds %+v", query, r)
			}
		}
	}
	all := 0
	for rows := search("name=reserve+stock"); ; rows = search(b.opened(`/search\?(.*before=.*)$`)) {
		all += len(rows)
		if len(b.texts("a[rel=next]")) == 0 {
			break
		}
		b.press("a[rel=next]", "\r")
	}
	if all != 34 { // checkouts: half of the 66 sent, and one started on the page
		t.Errorf("the pages have %d spans, want 34", all)
	}
	if rows := search("service=nobody"); len(rows) != 0 || !strings.Contains(strings.Join(b.texts("main"), ""), "No span matches") {
		t.Errorf("the search for an unknown service returns %+v", rows)
	}
	for _, r := range search("errors=1") {
		if r.Status != "Error" {
			t.Errorf("errors alone find %+v", r)
		}
	}

	// The form keeps its input.
	search("service=orders&name=load+prices&shortest=0.5&within=1h&errors=1")
	if form := value[string](b, "new URLSearchParams(new FormData(document.querySelector('.search'))).toString()"); form !=
		"service=orders&name=load+prices&shortest=0.5&within=1h&errors=1" {
		t.Errorf("the form holds %q", form)
	}
}

// eventually waits until a script returns the wanted value.
func (b *browser) eventually(script, want string) {
	b.t.Helper()
	got := value[string](b, fmt.Sprintf(`(async () => {
		for (let i = 0; i < 200 && (%s) !== %q; i++) await new Promise((r) => setTimeout(r, 25));
		return %s;
	})()`, script, want, script))
	if got != want {
		b.t.Errorf("%s is %q, want %q", script, got, want)
	}
}
