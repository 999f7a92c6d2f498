package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// HTTPProxy is a proxy for a server of HTTP.
type HTTPProxy struct {
	Counts
	target    *url.URL
	transport http.RoundTripper
	server    *httptest.Server
}

// HTTP returns a proxy for the server at an endpoint, to which it connects with a
// transport. Its clients use no TLS.
func HTTP(tb testing.TB, endpoint string, transport http.RoundTripper) *HTTPProxy {
	tb.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	p := &HTTPProxy{target: target, transport: transport}
	p.server = httptest.NewServer(p)
	tb.Cleanup(p.server.Close)
	return p
}

// Endpoint is that of the server through the proxy.
func (p *HTTPProxy) Endpoint() string { return p.server.URL }

// ServeHTTP implements [http.Handler].
func (p *HTTPProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f := p.draw()
	switch f {
	case slow:
		time.Sleep(moment())
	case requestLost:
		panic(http.ErrAbortHandler) // which closes the connection
	case late, doubled:
		go p.replay(r.Clone(context.Background()), body)
		if f == late {
			panic(http.ErrAbortHandler)
		}
	}
	res, err := p.forward(r, body)
	if err != nil || f == answerLost {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = res.Body.Close() }()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body)
}

// forward sends a request to the server, with the host for which it is signed.
func (p *HTTPProxy) forward(r *http.Request, body []byte) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = p.target.Scheme, p.target.Host, ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	return p.transport.RoundTrip(out)
}

// replay delivers a request. If the server is down by then, it is lost.
func (p *HTTPProxy) replay(r *http.Request, body []byte) {
	time.Sleep(while())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if res, err := p.forward(r.WithContext(ctx), body); err == nil {
		_ = res.Body.Close()
	}
}
