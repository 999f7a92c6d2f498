package cli

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// upstream sends requests to the server. Those of gRPC need HTTP/2, with TLS or without.
type upstream struct{ http, grpc *http.Transport }

func newUpstream(timeout time.Duration) upstream {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 100
	t.ResponseHeaderTimeout = timeout
	t.DisableCompression = true // the client's encoding is passed on
	g := t.Clone()
	g.Protocols = new(http.Protocols)
	g.Protocols.SetHTTP2(true)
	g.Protocols.SetUnencryptedHTTP2(true)
	return upstream{t, g}
}

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	// Not application/grpc-web, which any HTTP carries.
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+") {
		return u.grpc.RoundTrip(r)
	}
	return u.http.RoundTrip(r)
}

func newProxy(target *url.URL, transport http.RoundTripper, logger *log.Logger) http.Handler {
	// It flushes streams at once; FlushInterval would part the status of a gRPC error from its
	// stream's end.
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // with the parameters that Go cannot parse
			forward(r)
		},
		Transport: transport,
		ErrorLog:  logger,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			status := http.StatusBadGateway
			var network net.Error
			if errors.As(err, &network) && network.Timeout() {
				status = http.StatusGatewayTimeout
			}
			text := fmt.Sprintf("%s %s: %v", r.Method, r.URL.EscapedPath(), err)
			if r.Context().Err() == nil { // otherwise the client canceled it
				logger.Print(text)
			}
			http.Error(w, "traceflake proxy: "+text, status)
		},
	}
}

// forward keeps the headers in which earlier proxies describe the client, and adds this hop. Host
// and protocol are those of the first hop.
func forward(r *httputil.ProxyRequest) {
	names := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}
	r.Out.Header[names[0]] = r.In.Header[names[0]]
	r.SetXForwarded()
	for _, name := range append(names[1:], "Forwarded") {
		if values := r.In.Header[name]; values != nil {
			r.Out.Header[name] = values
		}
	}
}
