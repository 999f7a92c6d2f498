package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"hash/crc32"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// page shows the stored traces in a browser, and lets the browser start new ones.
type page struct {
	find  *finder
	spans *pipeline
	edge  *service
}

// startPage serves the page until it is shut down.
func startPage(listener net.Listener, spans *pipeline, find *finder, edge *service) *http.Server {
	p := &page{find, spans, edge}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.shows("list.html", p.list))
	mux.HandleFunc("GET /traces/{id}", p.shows("trace.html", p.trace))
	mux.HandleFunc("GET /open", func(w http.ResponseWriter, r *http.Request) {
		id := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("id")))
		http.Redirect(w, r, "/traces/"+url.PathEscape(id), http.StatusSeeOther)
	})
	static, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is invalid
	}
	mux.Handle("GET /static/", http.FileServerFS(static))
	mux.HandleFunc("GET /static/traceflake.js", func(w http.ResponseWriter, r *http.Request) {
		root, err := child.Repository()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		http.ServeFile(w, r, filepath.Join(root, "clients/js/traceflake.js"))
	})
	server := &http.Server{Handler: secured(mux), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // ends with Shutdown
	return server
}

// secured restricts pages to our own files; scripts may call other origins such as edge.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
			"connect-src 'self' http:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ms":     milliseconds,
	"valid":  func(id string) bool { _, err := trace.TraceIDFromHex(id); return err == nil },
	"colour": func(service string) uint32 { return crc32.ChecksumIEEE([]byte(service)) % 6 }, // of those in style.css
}).ParseFS(files, "page/*.html"))

// view is what a template shows.
type view struct {
	Title string
	Lost  error // why some spans are missing, or nil
	Data  any
}

// errInput is what an error about the user's input wraps.
var errInput = errors.New("bad request")

// shows serves a template with what get returns. Spans that ended before are stored first.
func (p *page) shows(file string, get func(*http.Request) (title string, data any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, name, status := view{Lost: p.spans.flush(r.Context())}, file, http.StatusOK
		var err error
		if v.Title, v.Data, err = get(r); err != nil {
			switch {
			case errors.Is(err, errInput):
				status = http.StatusBadRequest
			case errors.Is(err, errNoTrace):
				status = http.StatusNotFound
			default:
				status = http.StatusBadGateway
			}
			name, v.Title, v.Data = "error.html", http.StatusText(status), err
		}
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, v); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_, _ = text.WriteTo(w) // fails only if the browser has disconnected
	}
}

// perPage is the number of traces on a page of the list.
const perPage = 20

type listView struct {
	Before trace.TraceID // the cursor of this page
	Older  string        // the cursor of the next page
	Edge   string        // its port
	Routes []route
	Traces []listed
}

// list shows the newest traces, or those before a cursor.
func (p *page) list(r *http.Request) (_ string, _ any, err error) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.edge.url, "http://"))
	if err != nil {
		return "", nil, err
	}
	v := listView{Edge: port, Routes: routes}
	if cursor := r.URL.Query().Get("before"); cursor != "" {
		if v.Before, err = trace.TraceIDFromHex(cursor); err != nil {
			return "", nil, fmt.Errorf("%w: the cursor %q: %w", errInput, cursor, err)
		}
	}
	var more bool
	if v.Traces, more, err = p.find.newest(r.Context(), v.Before, perPage); more {
		v.Older = v.Traces[perPage-1].TraceID
	}
	return "Traces", v, err
}

// trace shows one trace.
func (p *page) trace(r *http.Request) (string, any, error) {
	id, err := trace.TraceIDFromHex(r.PathValue("id"))
	if err != nil {
		return "", nil, fmt.Errorf("%w: %q is not a trace ID: %w", errInput, r.PathValue("id"), err)
	}
	t, err := p.find.trace(r.Context(), id)
	return "Trace " + id.String(), t, err
}
