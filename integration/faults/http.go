package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
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
		server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // for which it is signed
			},
			Transport:    p,
			ErrorHandler: hangUp,
		})
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

// errGone is what happens to a client whose request or response is lost.
var errGone = errors.New("the connection is gone")

// RoundTrip implements [http.RoundTripper]: it delivers a request according to its fate.
func (p *HTTPProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(cmp.Or(r.Body, io.ReadCloser(http.NoBody)))
	if err != nil {
		return nil, err
	}
	forward := func(ctx context.Context) (*http.Response, error) {
		out := r.Clone(ctx)
		out.Body = io.NopCloser(bytes.NewReader(body))
		return p.transport.RoundTrip(out)
	}
	f := p.draw()
	switch f {
	case slow:
		time.Sleep(moment())
	case requestLost:
		return nil, errGone
	case late, doubled:
		go replay(forward)
		if f == late {
			return nil, errGone
		}
	}
	res, err := forward(r.Context())
	if err == nil && f == answerLost {
		drain(res)
		err = errGone
	}
	return res, err
}

// replay delivers a request after a while. If the server is down by then, it is lost.
func replay(forward func(context.Context) (*http.Response, error)) {
	time.Sleep(while())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if res, err := forward(ctx); err == nil {
		drain(res)
	}
}

func drain(res *http.Response) {
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

// hangUp lets a client see what it sees when its connection breaks. In HTTP/2 a connection carries
// other requests too, so only the response says so, as gRPC clients report it: UNAVAILABLE.
func hangUp(w http.ResponseWriter, r *http.Request, _ error) {
	if r.ProtoMajor < 2 {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "14")
	w.Header().Set("Grpc-Message", errGone.Error())
}
