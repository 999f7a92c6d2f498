package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
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
	proxyGrace      = 5 * time.Second // for requests that are being served at the end
	readHeaderLimit = 10 * time.Second
	tracesKept      = 30 * 24 * time.Hour
)

func proxyCommand(f *flags) *cobra.Command {
	var listen, metrics string
	var backend *string
	var slack, maxAge time.Duration
	var verify bool
	cmd := &cobra.Command{
		Use:   "proxy URL",
		Short: "Make lookups of a trace by its ID cheaper in Tempo and Jaeger",
		Long: `proxy forwards requests to the server at URL. When a trace is looked up by its ID,
it adds the earliest time at which the trace can have spans, which the ID contains.
If the server finds nothing, the original request is repeated. Other requests,
and lookups with a time range, are forwarded unchanged. Point Grafana's data
source at the proxy.

With --verify a time is added only for IDs that verify under --secret-file.
--metrics serves traceflake_lookup_requests_total for Prometheus at /metrics.`,
		Example: `  traceflake proxy --backend tempo http://tempo:3200
  traceflake proxy --backend jaeger --listen :16687 --metrics :9464 http://jaeger:16686`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := lookup.ParseBackend(*backend)
			if err != nil {
				return err
			}
			target, err := url.Parse(args[0])
			if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
				return fmt.Errorf("URL: want the address of the %s server, http://HOST:PORT or https://HOST:PORT", kind)
			}
			raw := http.DefaultTransport.(*http.Transport).Clone()
			raw.DisableCompression = true // the client's encoding is passed on
			registry := prometheus.NewRegistry()
			exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
			if err != nil {
				return err
			}
			opts := []lookup.Option{
				lookup.WithSlack(slack), lookup.WithTransport(raw),
				lookup.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))),
			}
			if verify {
				keyring, err := f.keyring()
				if err != nil {
					return err
				}
				if keyring == nil {
					return fmt.Errorf("--verify: %w", errNoSecret)
				}
				opts = append(opts, lookup.WithVerifier(traceid.NewVerifier(keyring, traceid.WithMaxAge(maxAge)).Verify))
			}
			transport, err := lookup.New(kind, opts...)
			if err != nil {
				return err
			}
			servers := []*http.Server{{Addr: listen, Handler: newProxy(target, transport, log.New(cmd.ErrOrStderr(), "traceflake: ", 0))}}
			if metrics != "" {
				mux := http.NewServeMux()
				mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
				servers = append(servers, &http.Server{Addr: metrics, Handler: mux})
			}
			return serve(cmd, servers...)
		},
	}
	backend = choiceFlag(cmd, "backend", "b", "kind of server", lookup.Tempo.String(), lookup.Jaeger.String())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:3201", "address to serve on")
	cmd.Flags().StringVar(&metrics, "metrics", "", "address to serve metrics on")
	durationFlag(cmd, &slack, "slack", lookup.DefaultSlack, "how long before the time of its ID a trace may have spans")
	cmd.Flags().BoolVar(&verify, "verify", false, "use only the times of IDs that verify")
	durationFlag(cmd, &maxAge, "max-age", tracesKept, "with --verify, how old a trace may be")
	return cmd
}

func newProxy(target *url.URL, transport http.RoundTripper, logger *log.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		Transport:     transport,
		FlushInterval: -1, // streams of search results
		ErrorLog:      logger,
	}
}

// serve runs the servers until the command is interrupted or one of them fails.
func serve(cmd *cobra.Command, servers ...*http.Server) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	for _, s := range servers {
		s.ReadHeaderTimeout = readHeaderLimit
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
		errs = append(errs, s.Shutdown(grace))
	}
	if cmd.Context().Err() == nil {
		errs = append(errs, context.Cause(ctx))
	}
	return errors.Join(errs...)
}
