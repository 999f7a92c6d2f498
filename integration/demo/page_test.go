package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
)

// inline matches what the content security policy forbids.
var inline = regexp.MustCompile(`(?i)<script>|<style|\son\w+=|\sstyle=|javascript:`)

func TestPage(t *testing.T) {
	use(t, servers.ClickHouseForTest(t), nil)
	demo := startDemo(t, "-requests", "1")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for pair := range slices.Chunk(headers, 2) {
			r.Header.Set(pair[0], pair[1])
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(body)
	}

	known := demo.find(`trace ([0-9a-f]{32}), sent by`)
	unknown := strings.Repeat("1", 32)
	const html = "text/html,*/*;q=0.8"
	for _, c := range []struct {
		path, accept string
		status       int
		kind, want   string
	}{
		{"/", html, 200, "text/html", `<a href="/traces/` + known + `">`},
		{"/", "*/*", 200, "text/html", `data-edge="` + demo.edge + `"`},
		{"/?before=" + known, html, 200, "text/html", "There are no older traces."},
		{"/?before=%3Cb%3E", html, 400, "text/html", "The cursor &#34;&lt;b&gt;&#34; is not a trace ID"},
		{"/traces/" + known, html, 200, "text/html", "The fields of the ID"},
		{"/traces/" + known, "*/*", 200, "text/plain", "15 spans in "},
		{"/traces/" + unknown, html, 404, "text/html", "found no trace " + unknown},
		{"/traces/" + unknown, "", 404, "text/plain", "found no trace " + unknown},
		{"/traces/1", html, 400, "text/html", "is not a trace ID"},
		{"/traces/1", "", 400, "text/plain", "is not a trace ID"},
		{"/open?id=" + strings.ToUpper(known) + "+", html, 303, "text/html", "/traces/" + known},
		{"/open?id=1", html, 400, "text/html", "is not a trace ID"},
		{"/open", html, 400, "text/html", "is not a trace ID"},
		{"/search", html, 200, "text/html", `<a href="/traces/` + known + `">`},
		{"/search?service=%3Cb%3E", html, 200, "text/html", `value="&lt;b&gt;"`},
		{"/search?shortest=long", html, 400, "text/html", "The shortest duration &#34;long&#34; is invalid"},
		{"/search?shortest=-1", html, 400, "text/html", "The shortest duration &#34;-1&#34; is invalid"},
		{"/search?shortest=NaN", html, 400, "text/html", "invalid"},
		{"/search?within=1y", html, 400, "text/html", "The period &#34;1y&#34; is invalid: choose 5m"},
		{"/search?before=now", html, 400, "text/html", "The time before=&#34;now&#34; is invalid"},
		{"/search?before=1950-01-01T00:00:00Z", html, 400, "text/html", "Bad Request"},
		{"/favicon.ico", html, 404, "text/html", "no page /favicon.ico"},
		{"/static/style.css", "", 200, "text/css", "color-scheme"},
		{"/static/script.js", "", 200, "text/javascript", "generateTraceId"},
		{"/static/traceflake.js", "", 200, "text/javascript", "getRandomValues"},
		{"/static/icon.svg", "", 200, "image/svg+xml", "<svg"},
	} {
		response, body := ask(t, http.MethodGet, demo.page+c.path, "Accept", c.accept)
		if response.StatusCode != c.status || !strings.HasPrefix(response.Header.Get("Content-Type"), c.kind) || !strings.Contains(body, c.want) {
			t.Errorf("%s as %q: %s, %s, want %d, %s and %q in:\n%s", c.path, c.accept, response.Status, response.Header.Get("Content-Type"), c.status, c.kind, c.want, body)
		}
		if c.kind == "text/html" && inline.MatchString(body) {
			t.Errorf("%s: inline %q", c.path, inline.FindString(body))
		}
		want := "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self' " + demo.edge + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		if got := response.Header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: policy %q, want %q", c.path, got, want)
		}
	}
	if response, _ := ask(t, http.MethodPost, demo.page+"/"); response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %s", response.Status)
	}

	t.Run("cross-origin", func(t *testing.T) {
		const ours = "x-b3-sampled,x-b3-spanid,x-b3-traceid,x-trace-id"
		for _, c := range []struct{ method, headers, want string }{
			{"POST", ours, ours},
			{"GET", ours, ours},
			{"POST", "authorization", ""},
			{"DELETE", ours, ""},
		} {
			response, _ := ask(t, http.MethodOptions, demo.edge+"/checkout", "Origin", demo.page,
				"Access-Control-Request-Method", c.method, "Access-Control-Request-Headers", c.headers)
			if got := response.Header.Get("Access-Control-Allow-Headers"); got != c.want {
				t.Errorf("preflight of %s with %s allows %q, want %q", c.method, c.headers, got, c.want)
			}
			if id := response.Header.Get("x-trace-id"); id != "" {
				t.Errorf("a preflight has the trace ID %s", id)
			}
		}
		response, _ := ask(t, http.MethodGet, demo.edge+"/orders/latest", "Origin", demo.page)
		if h := response.Header; h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Expose-Headers") != "x-trace-id" || h.Get("x-trace-id") == "" {
			t.Errorf("the response's headers are %v", h)
		}
	})

	demo.end()
}

func TestPageFindsEdgeOnItsOwnHost(t *testing.T) {
	p := &page{edge: "9"}
	for host, want := range map[string]string{
		"localhost:8080":    "http://localhost:9",
		"example.org":       "http://example.org:9",
		"[::1]:8080":        "http://[::1]:9",
		"[::1]":             "http://[::1]:9",
		"":                  "http://127.0.0.1:9",
		"a; script-src *":   "http://127.0.0.1:9",
		"a' 'unsafe-inline": "http://127.0.0.1:9",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		if got := p.edgeFor(r); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

func TestTracePage(t *testing.T) {
	trace := sample(func(spans []span) {
		s := &spans[1] // the root
		s.SpanName = `<script>alert("x")</script>`
		s.StatusCode, s.StatusMessage = "Error", `" onload="x`
		s.SpanAttributes = map[string]string{"<key>": "<value>"}
		s.EventNames, s.EventAttributes = []string{"<event>"}, []map[string]string{{}}
		s.EventTimes = []time.Time{s.Timestamp.Add(3 * time.Millisecond)}
		s.LinkTraceIDs, s.LinkSpanIDs, s.LinkAttributes = []string{`">`}, []string{"7"}, []map[string]string{nil}
	})
	render := func(lost error) string {
		w := httptest.NewRecorder()
		new(page).show(w, http.StatusOK, "trace.html", view{"<Title>", lost, trace})
		return w.Body.String()
	}
	page := render(errors.New("7 <spans> were lost"))
	for _, want := range []string{
		"<title>&lt;Title&gt;</title>", "5 spans in 10.00 ms, <strong class=\"error\">2 with an error</strong>",
		`<details class="failed">`, `&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt; <strong class="error">Error: &#34; onload=&#34;x</strong>`,
		`<span class="name d2">select</span>`, // below GET / and call
		`<rect class="s2" x="30.00%" width="20.00%"`,
		`<rect class="s4" x="90.00%" width="0.40%"`, // took no time, and is visible
		"2026-01-02 03:04:04.998 UTC", "the first span began 2.00 ms later", "node 7",
		`<th scope="row">granules</th>`, `<rect class="s0" width="25%"`, `<rect class="s1" width="100%"`,
		`<caption>One trace by its ID</caption>`, `<p class="faint">Measured so.</p>`,
		`<div><dt>&lt;key&gt;</dt><dd>&lt;value&gt;</dd></div>`, `<strong>&lt;event&gt;</strong> at 3.00 ms`, `<a href="/traces/%22%3e">`,
		`role="alert">Some spans are missing: 7 &lt;spans&gt; were lost</p>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in:\n%s", want, page)
		}
	}
	trace.Dated = false // a foreign ID
	page = render(nil)
	for _, no := range []string{"the first span began", `role="alert"`} {
		if strings.Contains(page, no) {
			t.Errorf("%s for a foreign ID, with nothing lost:\n%s", no, page)
		}
	}
}
