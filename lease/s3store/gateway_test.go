package s3store

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
)

// forward sends a request on to the server, without the headers named. It is
// signed anew if the proxy is one that has keys of its own.
func (p place) forward(t *testing.T, w http.ResponseWriter, r *http.Request, sign bool,
	without ...string) {
	target, err := url.Parse(p.endpoint)
	if err != nil {
		t.Error(err)
	}
	for _, name := range without {
		r.Header.Del(name)
	}
	if !sign {
		proxy := httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0),
			Rewrite: func(q *httputil.ProxyRequest) {
				q.SetURL(target)
				q.Out.Host = q.In.Host
			}}
		proxy.ServeHTTP(w, r)
		return
	}
	r.Header.Del("Authorization")
	body, _ := io.ReadAll(r.Body) // if the client is gone, its request fails at the server
	a, err := p.server(t, "").ask(r.Context(), r.Method, p.path(r), r.Header, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (p place) path(r *http.Request) string {
	return strings.TrimPrefix(r.URL.RequestURI(), "/"+p.bucket+"/")
}

// The store refuses a gateway that drops the conditions. Where it does not know the keys, the
// server refuses it, since they are signed.
func TestConditionsIgnored(t *testing.T) {
	server := real(t)
	for sign, text := range map[bool]string{true: "does not honour conditional writes",
		false: "SignatureDoesNotMatch"} {
		gateway := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					server.forward(t, w, r, sign, "If-Match", "If-None-Match")
				} else {
					server.forward(t, w, r, true)
				}
			}))
		err := create(t, server.behind(gateway.URL).open(t), 0)
		wantError(t, text, err, lease.ErrMisconfigured, text)
		gateway.Close()
	}
}

// A gateway that checks the condition when the headers are there and writes when
// the body is, as Versity's 1.6.0 and 1.7.0 do. Writes whose body comes with the
// headers are right: only one that arrives in parts shows the fault.
func TestConditionsCheckedEarly(t *testing.T) {
	server := real(t)
	var mu sync.Mutex
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "" {
			a, err := server.server(t, "").ask(r.Context(), http.MethodGet, server.path(r), nil,
				nil)
			if err != nil || a.status == http.StatusOK {
				w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
				(&stub{status: http.StatusPreconditionFailed,
					code: "PreconditionFailed"}).ServeHTTP(w, r)
				return
			}
		}
		whole := make(chan []byte, 1)
		go func() {
			body, _ := io.ReadAll(r.Body)
			whole <- body
		}()
		var body []byte
		select {
		case body = <-whole:
		case <-time.After(10 * time.Millisecond):
			mu.Unlock()
			body = <-whole
			mu.Lock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.forward(t, w, r, true, "If-Match", "If-None-Match")
	}))
	defer gateway.Close()
	err := create(t, server.behind(gateway.URL).open(t), 0)
	wantError(t, "create", err, lease.ErrMisconfigured,
		"of 8 writes at once, each on condition that there is no such object")
}

// A gateway that changes what it stores. Without the server's keys it is refused by the server;
// with keys of its own, the server's answer shows it.
func TestAlteredBodies(t *testing.T) {
	server := real(t)
	for _, c := range []struct {
		name    string
		sign    bool
		without []string // headers
		do      func(w http.ResponseWriter, r *http.Request)
		want    error
		text    string
	}{
		{"refused", false, nil, nil, lease.ErrMisconfigured, "XAmzContentSHA256Mismatch"},
		{"signed", true, nil, nil, nil, "BadDigest"},
		{"signed, without the checksum", true, []string{"Content-Md5"}, nil, nil,
			"did not store what was sent"},
		{"not stored", true, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", r.Header.Get("If-Match"))
		}, nil, "did not store what was sent"},
	} {
		var alters atomic.Bool
		gateway := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !alters.Load() || r.Method != http.MethodPut:
					server.forward(t, w, r, false)
				case c.do != nil:
					c.do(w, r)
				default:
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(bytes.ToUpper(body)))
					server.forward(t, w, r, c.sign, c.without...)
				}
			}))
		s := server.behind(gateway.URL).open(t)
		if err := create(t, s, 8); err != nil {
			t.Fatal(err)
		}
		alters.Store(true)
		_, err := s.Acquire(t.Context(), calls.Request(time.Now()))
		wantError(t, c.name, err, c.want, c.text)
		gateway.Close()
	}
}
