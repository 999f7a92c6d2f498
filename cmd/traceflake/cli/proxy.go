package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"net/http"
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
	defaultSlack = time.Hour
	tracesKept   = 366 * 24 * time.Hour // older IDs do not verify
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
			if err = cmp.Or(err, needs(cmd, "secret-file", "--verify", p.verify)); err != nil {
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
	transport, err := p.transport(cmd, f, registry)
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

// transport returns the transport that adds times to lookups. Its metrics are in the registry.
func (p *proxy) transport(cmd *cobra.Command, f *commonFlags, registry *prometheus.Registry) (
	http.RoundTripper, error) {
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, err
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
			return nil, fmt.Errorf("--verify: %w", err)
		}
		options.Verify = traceid.NewVerifier(keyring, traceid.WithMaxAge(tracesKept)).Verify
	}
	return lookup.New(lookup.Backend(*p.backend), options)
}
