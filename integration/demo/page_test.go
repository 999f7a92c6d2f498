package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

// demo is a run of the demo that serves the page.
type demo struct {
	t          *testing.T
	edge, page string
	log        bytes.Buffer
	began      string // the log until serving started
	interrupt  func()
	ended      chan error
	rest       chan struct{}
}

func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	d := &demo{t: t, interrupt: cancel, ended: make(chan error, 1), rest: make(chan struct{})}
	go func() {
		err := run(ctx, append([]string{"-history", "0", "-serve", loopback + ":0"}, args...), writer)
		d.ended <- errors.Join(err, writer.Close())
	}()
	buffer := make([]byte, 1024)
	for !strings.Contains(d.log.String(), "curl ") {
		n, err := reader.Read(buffer)
		d.log.Write(buffer[:n])
		if err != nil {
			t.Fatalf("%v, %v:\n%s", err, <-d.ended, &d.log)
		}
	}
	d.began = d.log.String()
	d.edge, d.page = d.find(`POST (http://\S+)/checkout`), d.find(`Ctrl-C: (http://\S+)`)
	go func() {
		_, _ = io.Copy(&d.log, reader)
		close(d.rest)
	}()
	return d
}

// find searches the log until serving started.
func (d *demo) find(pattern string) string {
	m := regexp.MustCompile(pattern).FindStringSubmatch(d.began)
	if m == nil {
		d.t.Fatalf("no %q in:\n%s", pattern, d.began)
	}
	return m[1]
}

// end interrupts the demo and checks that no span was lost.
func (d *demo) end() {
	d.interrupt()
	if err := <-d.ended; err != nil {
		d.t.Errorf("run ended with %v after the interrupt", err)
	}
	<-d.rest
	contains(d.t, d.log.String(), " 0 lost")
}

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

	known := demo.find(`trace ([0-9a-f]{32}), started by`)
	unknown := strings.Repeat("1", 32)
	for path, c := range map[string]struct {
		status     int
		kind, want string
	}{
		"/":                                   {200, "text/html", `<a href="/traces/` + known + `">`},
		"/?before=" + known:                   {200, "text/html", "There are no older traces."},
		"/?before=%3Cb%3E":                    {400, "text/html", "the cursor &#34;&lt;b&gt;&#34;"},
		"/traces/" + known:                    {200, "text/html", "12 spans in "},
		"/traces/" + unknown:                  {404, "text/html", "found no trace " + unknown},
		"/traces/1":                           {400, "text/html", "is not a trace ID"},
		"/open?id=" + known[:20] + "+%2F":     {303, "text/html", "/traces/" + known[:20] + "%20%2F"},
		"/open?id=+" + strings.ToUpper(known): {303, "text/html", "/traces/" + known},
		"/static/style.css":                   {200, "text/css", "color-scheme"},
		"/static/script.js":                   {200, "text/javascript", "generateTraceId"},
		"/static/traceflake.js":               {200, "text/javascript", "getRandomValues"},
		"/static/icon.svg":                    {200, "image/svg+xml", "<svg"},
		"/static/nothing":                     {404, "text/plain", "not found"},
	} {
		response, body := ask(t, http.MethodGet, demo.page+path)
		if kind := response.Header.Get("Content-Type"); response.StatusCode != c.status || !strings.HasPrefix(kind, c.kind) || !strings.Contains(body, c.want) {
			t.Errorf("%s: %s, %s, want %d, %s and %q in:\n%s", path, response.Status, kind, c.status, c.kind, c.want, body)
		}
		if c.kind == "text/html" && inline.MatchString(body) {
			t.Errorf("%s: inline %q", path, inline.FindString(body))
		}
		if got := response.Header.Get("Content-Security-Policy"); !strings.Contains(got, "script-src 'self'; ") {
			t.Errorf("%s: policy %q", path, got)
		}
	}

	t.Run("cross-origin", func(t *testing.T) {
		const ours = "x-b3-sampled,x-b3-spanid,x-b3-traceid,x-trace-id"
		for _, c := range []struct{ method, headers, want string }{
			{"POST", ours, ours}, {"GET", ours, ours}, {"POST", "authorization", ""}, {"DELETE", ours, ""},
		} {
			response, _ := ask(t, http.MethodOptions, demo.edge+"/checkout", "Origin", demo.page,
				"Access-Control-Request-Method", c.method, "Access-Control-Request-Headers", c.headers)
			if got := response.Header.Get("Access-Control-Allow-Headers"); got != c.want || response.Header.Get("x-trace-id") != "" {
				t.Errorf("preflight of %s with %s: %v, want %q and no trace ID", c.method, c.headers, response.Header, c.want)
			}
		}
		response, _ := ask(t, http.MethodGet, demo.edge+"/orders/latest", "Origin", demo.page)
		if h := response.Header; h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Expose-Headers") != "x-trace-id" || h.Get("x-trace-id") == "" {
			t.Errorf("the response's headers are %v", h)
		}
	})
	demo.end()
}
