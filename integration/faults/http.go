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

// HTTPProxy is a proxy for servers of HTTP, among them those of gRPC without TLS and streams.
type HTTPProxy struct {
	Counts
	transport http.RoundTripper
	servers   []*httptest.Server
}

// HTTP returns a proxy for the servers at some endpoints, to which it connects with a transport. Its
// clients use no TLS.
func HTTP(tb testing.TB, transport http.RoundTripper, endpoints ...string) *HTTPProxy {
	tb.Helper()
	p := &HTTPProxy{transport: transport}
	for _, endpoint := range endpoints {
		target, err := url.Parse(endpoint)
		if err != nil {
			tb.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, target) }))
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		tb.Cleanup(server.Close)
		p.servers = append(p.servers, server)
	}
	return p
}

// GRPC is a transport to servers of gRPC without TLS.
func GRPC() http.RoundTripper {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// Endpoint is that of the first server through the proxy.
func (p *HTTPProxy) Endpoint() string { return p.servers[0].URL }

// Addresses are host:port of all servers through the proxy.
func (p *HTTPProxy) Addresses() (addresses []string) {
	for _, s := range p.servers {
		addresses = append(addresses, s.Listener.Addr().String())
	}
	return addresses
}

func (p *HTTPProxy) serve(w http.ResponseWriter, r *http.Request, target *url.URL) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f := p.draw()
	switch f {
	case slow:
		time.Sleep(moment())
	case requestLost:
		hangUp(w, r)
		return
	case late, doubled:
		go p.replay(r.Clone(context.Background()), body, target)
		if f == late {
			hangUp(w, r)
			return
		}
	}
	res, err := p.forward(r, body, target)
	if err != nil {
		hangUp(w, r)
		return
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil || f == answerLost {
		hangUp(w, r)
		return
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(answer)
	for name, values := range res.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
}

// hangUp lets a client see what it sees when its connection breaks. In HTTP/2 a connection carries
// other requests too, so only the response says so, as gRPC clients report it: UNAVAILABLE.
func hangUp(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "14")
	w.Header().Set("Grpc-Message", "the connection is gone")
}

// forward sends a request to the server, with the host for which it is signed.
func (p *HTTPProxy) forward(r *http.Request, body []byte, target *url.URL) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = target.Scheme, target.Host, ""
	out.Body = io.NopCloser(bytes.NewReader(body))
	return p.transport.RoundTrip(out)
}

// replay delivers a request. If the server is down by then, it is lost.
func (p *HTTPProxy) replay(r *http.Request, body []byte, target *url.URL) {
	time.Sleep(while())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if res, err := p.forward(r.WithContext(ctx), body, target); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}
