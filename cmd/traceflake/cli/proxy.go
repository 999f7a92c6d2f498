package cli

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/traceflake/traceflake/lookup"
	"github.com/traceflake/traceflake/traceid"
)

const (
	proxyGrace      = 5 * time.Second // for requests and streams that are being served at the end
	readHeaderLimit = 10 * time.Second
	tracesKept      = 366 * 24 * time.Hour // older IDs do not verify
	idleConnections = 100                  // to the server
)

func proxyCommand(f *flags) *cobra.Command {
	var listen, metrics string
	var backend *string
	var slack, timeout time.Duration
	var verify bool
	cmd := &cobra.Command{
		Use:   "proxy URL",
		Short: "Make lookups of a trace by its ID cheaper in Tempo and Jaeger",
		Long: `proxy forwards requests to the server at URL. When a trace is looked up by its ID,
it adds the earliest time at which the trace can have spans, which the ID contains.
If the server finds nothing, the original request is repeated. Other requests,
and lookups with a time range, are forwarded unchanged, gRPC without TLS included.

SSL_CERT_FILE names certificates to trust for https, and HTTP_PROXY, HTTPS_PROXY and
NO_PROXY a proxy on the way to URL. SIGTERM ends the proxy when all requests are
served, after 5 seconds at the latest.`,
		Example: `  traceflake proxy --backend tempo http://tempo:3200
  traceflake proxy --backend jaeger --listen :16687 --metrics :9464 http://jaeger:16686`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := url.Parse(args[0])
			if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" ||
				target.User != nil || target.RawQuery != "" || target.Fragment != "" { // the user's Authorization header is forwarded
				return errors.New("URL: want the address of the server, http://HOST:PORT or https://HOST:PORT, perhaps with a path, without a user or a query")
			}
			registry := prometheus.NewRegistry()
			exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
			if err != nil {
				return err
			}
			opts := []lookup.Option{
				lookup.WithSlack(slack), lookup.WithTransport(newUpstream(timeout)),
				lookup.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))),
			}
			if verify {
				keyring, err := f.verifying(cmd)
				if err != nil {
					return fmt.Errorf("--verify: %w", err)
				}
				opts = append(opts, lookup.WithVerifier(traceid.NewVerifier(keyring, traceid.WithMaxAge(tracesKept)).Verify))
			}
			transport, err := lookup.New(lookup.Backend(*backend), opts...)
			if err != nil {
				return err
			}
			logger := log.New(cmd.ErrOrStderr(), "traceflake: ", 0)
			servers := []*http.Server{{Addr: listen, Handler: newProxy(target, transport, logger), ErrorLog: logger}}
			if metrics != "" {
				mux := http.NewServeMux()
				mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
				mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
				servers = append(servers, &http.Server{Addr: metrics, Handler: mux, ErrorLog: logger})
			}
			return serve(cmd, servers...)
		},
	}
	f.addSecret(cmd)
	backend = choiceFlag(cmd, "backend", "b", "kind of server", string(lookup.Tempo), string(lookup.Jaeger))
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:3201", "address to serve on")
	cmd.Flags().StringVar(&metrics, "metrics", "", "address to serve /metrics and /healthz on")
	durationFlag(cmd, &slack, "slack", lookup.DefaultSlack, "how long before the time of its ID a trace may have spans")
	durationFlag(cmd, &timeout, "timeout", time.Minute, "how long to wait for the server's response; 0 means no limit")
	cmd.Flags().BoolVar(&verify, "verify", false, "use only the times of IDs that verify")
	return cmd
}

// upstream sends requests to the server. Those of gRPC need HTTP/2, with TLS or without.
type upstream struct{ http, grpc *http.Transport }

func newUpstream(timeout time.Duration) upstream {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = idleConnections
	t.ResponseHeaderTimeout = timeout
	t.DisableCompression = true // the client's encoding is passed on
	g := t.Clone()
	g.Protocols = new(http.Protocols)
	g.Protocols.SetHTTP2(true)
	g.Protocols.SetUnencryptedHTTP2(true)
	return upstream{t, g}
}

func (u upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return u.grpc.RoundTrip(r)
	}
	return u.http.RoundTrip(r)
}

func newProxy(target *url.URL, transport http.RoundTripper, logger *log.Logger) http.Handler {
	return &httputil.ReverseProxy{ // it flushes streams at once; FlushInterval would part the status of a gRPC error from its stream's end
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // with the parameters that Go cannot parse
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
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

// serve runs the servers until the command is interrupted or one of them fails.
func serve(cmd *cobra.Command, servers ...*http.Server) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	for _, s := range servers {
		s.ReadHeaderTimeout = readHeaderLimit
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		listener, err := net.Listen("tcp", s.Addr)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "listening on http://%s\n", listener.Addr())
		go func() { cancel(s.Serve(listener)) }()
	}
	<-ctx.Done()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), proxyGrace)
	defer stop()
	var errs []error
	for _, s := range servers {
		err := s.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.Close()
		}
		errs = append(errs, err)
	}
	if cmd.Context().Err() == nil {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}
