// Command otelhttp is two HTTP services with OpenTelemetry and traceflake's IDs. Start each
// in its own terminal, and send the shop a request:
//
//	go run . orders 127.0.0.1:8081
//	ORDERS_URL=http://127.0.0.1:8081 go run . shop 127.0.0.1:8080
//	curl -i http://127.0.0.1:8080/checkout
//
// What to copy is in telemetry.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "otelhttp:", err)
		os.Exit(1)
	}
}

var services = map[string]http.HandlerFunc{"shop": checkout, "orders": order}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	if len(args) != 2 || services[args[0]] == nil {
		return errors.New("usage: shop ADDRESS or orders ADDRESS")
	}
	name := args[0]
	listener, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	ids, stopTelemetry, err := startTelemetry(ctx, name)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(services[name]), name)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(os.Stderr, "%s serves http://%s\n", name, listener.Addr())
	if address := os.Getenv("PROBE_ADDRESS"); address != "" { // not for the outside
		mux := http.NewServeMux()
		mux.Handle("/ready", ids.ReadyHandler())
		mux.Handle("/metrics", promhttp.Handler())
		probes := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		defer probes.Close()
		listener, err := net.Listen("tcp", address)
		if err == nil {
			fmt.Fprintf(os.Stderr, "%s serves http://%s/ready\n", name, listener.Addr())
			go func() { ended <- probes.Serve(listener) }()
		} else {
			ended <- err
		}
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	requests, cancel := context.WithTimeout(ctx, 5*time.Second) // the rest is for their spans
	defer cancel()
	return errors.Join(err, server.Shutdown(requests), stopTelemetry(ctx))
}

// client starts a span for each request and sends its IDs along.
var client = http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}

// checkout is the shop's: it calls orders.
func checkout(w http.ResponseWriter, r *http.Request) {
	request, err := http.NewRequestWithContext(r.Context(), "POST", os.Getenv("ORDERS_URL"), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	response, err := client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(w, response.Body)
}

func order(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ordered") }
