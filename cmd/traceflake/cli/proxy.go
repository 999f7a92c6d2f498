package cli

import (
	"cmp"
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
	defaultSlack    = time.Hour
	readHeaderLimit = 10 * time.Second
	idleLimit       = 2 * time.Minute      // of a client's connection
	tracesKept      = 366 * 24 * time.Hour // older IDs do not verify
	idleConnections = 100                  // to the server
)

// proxy holds the flags of the command.
type proxy struct {
	listen, metrics       string
	backend               *string
	slack, timeout, grace time.Duration
	verify                bool
}

func proxyCommand(f *commonFlags) *cobra.Command {
	var p proxy
	cmd := &cobra.Command{
		Use:   "proxy URL",
		Short: "Make lookups of a trace by its ID cheaper in Tempo and Jaeger",
		Long: `proxy forwards requests to the server at URL. When a trace is looked up by its ID,
it adds the earliest time at which the trace can have spans, which the ID contains.
If the server finds nothing, the original request is sent. Other requests,
including gRPC without TLS, and lookups with a time range are forwarded unchanged.

Set SSL_CERT_FILE to a file of certificates to trust for https, and HTTP_PROXY,
HTTPS_PROXY and NO_PROXY for a proxy on the way to URL. After SIGTERM the proxy serves
open requests, for --grace at most, and exits.`,
		Example: `  traceflake proxy --backend tempo http://tempo:3200
  traceflake proxy --backend jaeger --listen :16687 --metrics :9464 http://jaeger:16686`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := serverURL(args[0])
			if err != nil {
				return err
			}
			return p.run(cmd, f, target)
		},
	}
	f.addSecret(cmd)
	p.backend = choiceFlag(cmd, "backend", "b", "kind of server",
		string(lookup.Tempo), string(lookup.Jaeger))
	cmd.Flags().StringVar(&p.listen, "listen", "127.0.0.1:3201", "address to serve on")
	cmd.Flags().StringVar(&p.metrics, "metrics", "", "address to serve /metrics and /healthz on")
	durationFlag(cmd, &p.slack, "slack", defaultSlack,
		"how long before the time of its ID a trace may have spans")
	durationFlag(cmd, &p.timeout, "timeout", time.Minute,
		"how long a lookup may take, and how long others wait for a response; 0 means no limit")
	durationFlag(cmd, &p.grace, "grace", 0,
		"how long requests may take after SIGTERM (default: the timeout, or 1m without one)")
	cmd.Flags().BoolVar(&p.verify, "verify", false, "use only the times of IDs that verify")
	return cmd
}

func serverURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		// The client's Authorization header is forwarded, so there is no user here.
		return nil, errors.New("URL: want the address of the server, http://HOST:PORT or " +
			"https://HOST:PORT, perhaps with a path, without a user or a query")
	}
	return u, nil
}

// drain returns how long requests and streams may take at the end.
func (p *proxy) drain() time.Duration { return cmp.Or(p.grace, p.timeout, time.Minute) }

func (p *proxy) run(cmd *cobra.Command, f *commonFlags, target *url.URL) error {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return err
	}
	options := lookup.Options{
		Slack:         cmp.Or(p.slack, 1), // 0 would mean the default
		Timeout:       p.timeout,
		Transport:     newUpstream(p.timeout),
		MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter)),
	}
	if p.verify {
		keyring, err := f.secrets(cmd)
		if err != nil {
			return fmt.Errorf("--verify: %w", err)
		}
		options.Verify = traceid.NewVerifier(keyring, traceid.WithMaxAge(tracesKept)).Verify
	}
	transport, err := lookup.New(lookup.Backend(*p.backend), options)
	if err != nil {
		return err
	}
	logger := log.New(cmd.ErrOrStderr(), "traceflake: ", 0)
	servers := []*http.Server{
		{Addr: p.listen, Handler: newProxy(target, transport, logger), ErrorLog: logger},
	}
	if p.metrics != "" {
		mux := http.NewServeMux()
		mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "ok")
		})
		servers = append(servers, &http.Server{Addr: p.metrics, Handler: mux, ErrorLog: logger})
	}
	return serve(cmd, p.drain(), servers...)
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

// serve runs the servers until the command is interrupted or one of them fails.
func serve(cmd *cobra.Command, grace time.Duration, servers ...*http.Server) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	for _, s := range servers {
		s.ReadHeaderTimeout, s.IdleTimeout = readHeaderLimit, idleLimit
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
	served, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	var errs []error
	for _, s := range servers {
		err := s.Shutdown(served)
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
