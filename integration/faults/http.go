// Package faults puts a [network.Bad] between the processes of a test and HTTP servers:
// those of S3, Kubernetes and etcd, whose messages share connections. For other servers use a
// [network.Proxy].
package faults

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/network"
)

// HTTPProxy is a proxy for HTTP servers, including gRPC without TLS or streams.
type HTTPProxy struct {
	network.Bad
	Addresses []string // host:port of each server through the proxy
}

// HTTP returns a proxy for the servers at some endpoints. Neither servers nor clients use TLS.
func HTTP(tb testing.TB, endpoints ...string) *HTTPProxy {
	tb.Helper()
	p := new(HTTPProxy)
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
		server.Config.Protocols = unencrypted(true)
		server.Start()
		tb.Cleanup(server.Close)
		p.Addresses = append(p.Addresses, server.Listener.Addr().String())
	}
	return p
}

func unencrypted(http1 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(http1)
	p.SetUnencryptedHTTP2(true)
	return p
}

// transports send requests to HTTP/1 and gRPC servers, by the HTTP version of a request.
var transports = map[int]http.RoundTripper{1: http.DefaultTransport,
	2: &http.Transport{Protocols: unencrypted(false)}}

// Endpoint returns the URL of the first server through the proxy.
func (p *HTTPProxy) Endpoint() string { return "http://" + p.Addresses[0] }

// RoundTrip implements [http.RoundTripper]: it sends a request through the network.
func (p *HTTPProxy) RoundTrip(r *http.Request) (res *http.Response, err error) {
	body, err := io.ReadAll(cmp.Or(r.Body, io.ReadCloser(http.NoBody)))
	if err != nil {
		return nil, err
	}
	forward := func(ctx context.Context) (*http.Response, error) {
		out := r.Clone(ctx)
		out.Body = io.NopCloser(bytes.NewReader(body))
		return transports[r.ProtoMajor].RoundTrip(out)
	}
	err = p.Send(func(answered bool) error {
		got, err := forward(r.Context())
		if err == nil && !answered {
			drain(got)
		}
		res = got
		return err
	}, func() { // if the server is down, the message is lost
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if res, err := forward(ctx); err == nil {
			drain(res)
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func drain(res *http.Response) {
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

// hangUp responds as if the client's connection had broken. In HTTP/2 a connection carries other
// requests, too, so only the response fails, with the code that gRPC clients report for broken
// connections: UNAVAILABLE.
func hangUp(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor < 2 {
		panic(http.ErrAbortHandler) // which closes the connection
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", "14")
	w.Header().Set("Grpc-Message", err.Error())
}
