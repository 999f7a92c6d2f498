package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/crc32"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clients/js"
)

// page shows the stored traces in a browser, and lets the browser start new ones.
type page struct {
	find   *finder
	spans  *pipeline
	url    string
	server *http.Server
	edge   string // port
}

// startPage serves the page until it is closed.
func startPage(listener net.Listener, spans *pipeline, find *finder, edge *service) (*page, error) {
	p := &page{find: find, spans: spans, url: "http://" + listener.Addr().String()}
	var err error
	if _, p.edge, err = net.SplitHostPort(strings.TrimPrefix(edge.url, "http://")); err != nil {
		return nil, err
	}
	static, err := fs.Sub(files, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.shows("list.html", p.list))
	mux.HandleFunc("GET /traces/{id}", p.traceOrText)
	mux.HandleFunc("GET /open", p.open)
	mux.HandleFunc("GET /search", p.shows("search.html", p.search))
	mux.Handle("GET /static/", http.FileServerFS(static))
	mux.HandleFunc("GET /static/traceflake.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "traceflake.js", time.Time{}, strings.NewReader(js.Source))
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, fmt.Errorf("%w%s", errNoPage, r.URL.Path))
	})
	p.server = &http.Server{Handler: p.secured(mux), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // ends with Shutdown
	return p, nil
}

func (p *page) close(ctx context.Context) error { return p.server.Shutdown(ctx) }

var hostname = regexp.MustCompile(`^[0-9A-Za-z.:-]+$`)

// edgeFor returns the URL of edge for the client of r: edge's port on the host under which the
// client reached the page.
func (p *page) edgeFor(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host = strings.Trim(host, "[]"); !hostname.MatchString(host) {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, p.edge)
}

// secured restricts pages to our own files and to edge.
func (p *page) secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
			"connect-src 'self' "+p.edgeFor(r)+"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ms":     milliseconds,
	"after":  func(at, start time.Time) string { return milliseconds(at.Sub(start)) },
	"min":    func(a, b int) int { return min(a, b) },
	"valid":  func(id string) bool { _, err := trace.TraceIDFromHex(id); return err == nil },
	"colour": func(service string) uint32 { return crc32.ChecksumIEEE([]byte(service)) % 6 }, // of those in style.css
}).ParseFS(files, "page/*.html"))

// view is what a template shows.
type view struct {
	Title string
	Lost  error // why some spans are missing, or nil
	Data  any
}

// shows serves a template with what get returns. Spans that ended before are stored first.
func (p *page) shows(name string, get func(*http.Request) (title string, data any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lost := p.spans.flush(r.Context())
		title, data, err := get(r)
		if err != nil {
			p.fail(w, err)
			return
		}
		p.show(w, http.StatusOK, name, view{title, lost, data})
	}
}

var (
	errNoPage = errors.New("there is no page ")
	errInput  = errors.New("")
)

// badInput returns an error about what the user typed. The text is a sentence.
func badInput(format string, args ...any) error {
	return fmt.Errorf("%w%s", errInput, fmt.Sprintf(format, args...))
}

func status(err error) int {
	switch {
	case errors.Is(err, errInput):
		return http.StatusBadRequest
	case errors.Is(err, errNoTrace), errors.Is(err, errNoPage):
		return http.StatusNotFound
	}
	return http.StatusBadGateway
}

func (p *page) fail(w http.ResponseWriter, err error) {
	p.show(w, status(err), "error.html", view{Title: http.StatusText(status(err)), Data: err})
}

func (p *page) show(w http.ResponseWriter, status int, name string, v view) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w) // fails only if the browser has disconnected
}

// perPage is the number of traces on a page of the list.
const perPage = 20

type listView struct {
	Before trace.TraceID // the cursor of this page
	Older  string        // the cursor of the next page
	Edge   string        // its URL for the browser
	Routes []route
	Traces []listed
	Form   searchForm
}

// list shows the newest traces, or those before a cursor.
func (p *page) list(r *http.Request) (_ string, _ any, err error) {
	v := listView{Edge: p.edgeFor(r), Routes: routes}
	if cursor := r.URL.Query().Get("before"); cursor != "" {
		if v.Before, err = trace.TraceIDFromHex(cursor); err != nil {
			return "", nil, badInput("The cursor %q is not a trace ID: %v.", cursor, err)
		}
	}
	var more bool
	if v.Traces, more, err = p.find.newest(r.Context(), v.Before, perPage); err != nil {
		return "", nil, err
	}
	if more {
		v.Older = v.Traces[perPage-1].TraceID
	}
	v.Form, err = p.newSearchForm(r.Context(), nil)
	return "Traces", v, err
}

// trace shows one trace.
func (p *page) trace(r *http.Request) (string, any, error) {
	t, err := p.lookUp(r)
	if err != nil {
		return "", nil, err
	}
	return t.Lines[0].SpanName + ", trace " + t.ID.String(), t, nil
}

func (p *page) lookUp(r *http.Request) (found, error) {
	id, err := trace.TraceIDFromHex(r.PathValue("id"))
	if err != nil {
		return found{}, badInput("%q is not a trace ID: %v.", r.PathValue("id"), err)
	}
	return p.find.trace(r.Context(), id)
}

// traceOrText shows one trace: to browsers as a page, to other clients as text.
func (p *page) traceOrText(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		p.shows("trace.html", p.trace)(w, r)
		return
	}
	lost := p.spans.flush(r.Context())
	t, err := p.lookUp(r)
	if err != nil {
		http.Error(w, err.Error(), status(err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if lost != nil {
		fmt.Fprintln(w, lost)
	}
	waterfall(w, t)
}

// open redirects to the trace whose ID was typed.
func (p *page) open(w http.ResponseWriter, r *http.Request) {
	text := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("id")))
	id, err := trace.TraceIDFromHex(text)
	if err != nil {
		p.fail(w, badInput("%q is not a trace ID: %v.", text, err))
		return
	}
	http.Redirect(w, r, "/traces/"+id.String(), http.StatusSeeOther)
}
