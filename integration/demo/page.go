package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
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
	mux.HandleFunc("GET /{$}", p.list)
	mux.HandleFunc("GET /traces/{id}", p.trace)
	mux.HandleFunc("GET /open", p.open)
	mux.HandleFunc("GET /search", p.search)
	mux.Handle("GET /static/", http.FileServerFS(static))
	mux.HandleFunc("GET /static/traceflake.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "traceflake.js", time.Time{}, strings.NewReader(js.Source))
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, http.StatusNotFound, "There is no page "+r.URL.Path+".")
	})
	p.server = &http.Server{Handler: p.secured(mux), ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // ends with Shutdown
	return p, nil
}

func (p *page) close(ctx context.Context) error { return p.server.Shutdown(ctx) }

//go:embed page
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page/*.html"))

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

// list shows the newest traces, or those before a cursor.
func (p *page) list(w http.ResponseWriter, r *http.Request) {
	var before trace.TraceID
	if cursor := r.URL.Query().Get("before"); cursor != "" {
		var err error
		if before, err = trace.TraceIDFromHex(cursor); err != nil {
			p.fail(w, http.StatusBadRequest, fmt.Sprintf("The cursor %q is not a trace ID: %v.", cursor, err))
			return
		}
	}
	lost := p.spans.flush(r.Context())
	traces, more, err := p.find.newest(r.Context(), before, perPage)
	if err != nil {
		p.fail(w, http.StatusBadGateway, err.Error())
		return
	}
	services, err := p.find.services(r.Context())
	if err != nil {
		p.fail(w, http.StatusBadGateway, err.Error())
		return
	}
	p.show(w, http.StatusOK, "list.html", newListView(traces, more, before, newSearchForm(services), p.edgeFor(r), lost))
}

// trace shows one trace: to browsers as a page, to other clients as text.
func (p *page) trace(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	asPage := strings.Contains(r.Header.Get("Accept"), "text/html")
	fail := func(status int, reason string) {
		if asPage {
			p.fail(w, status, reason)
			return
		}
		http.Error(w, reason, status)
	}
	id, err := trace.TraceIDFromHex(r.PathValue("id"))
	if err != nil {
		fail(http.StatusBadRequest, fmt.Sprintf("%q is not a trace ID: %v", r.PathValue("id"), err))
		return
	}
	lost := p.spans.flush(r.Context())
	t, err := p.find.trace(r.Context(), id)
	switch {
	case errors.Is(err, errNoTrace):
		fail(http.StatusNotFound, err.Error())
	case err != nil:
		fail(http.StatusBadGateway, err.Error())
	case asPage:
		p.show(w, http.StatusOK, "trace.html", newTraceView(t, lost))
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out := newScreen(w)
		if lost != nil {
			out.printf("%v\n", lost)
		}
		out.waterfall(t)
	}
}

// open redirects to the trace whose ID was typed.
func (p *page) open(w http.ResponseWriter, r *http.Request) {
	text := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("id")))
	id, err := trace.TraceIDFromHex(text)
	if err != nil {
		p.fail(w, http.StatusBadRequest, fmt.Sprintf("%q is not a trace ID: %v.", text, err))
		return
	}
	http.Redirect(w, r, "/traces/"+id.String(), http.StatusSeeOther)
}

func (p *page) fail(w http.ResponseWriter, status int, reason string) {
	p.show(w, status, "error.html", errorView{head: head{Title: http.StatusText(status)}, Reason: reason})
}

func (p *page) show(w http.ResponseWriter, status int, name string, view any) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w) // fails only if the browser has disconnected
}
