// Command otelhttp contains two HTTP services with OpenTelemetry and traceflake's IDs, and a
// gateway. Start each in its own terminal, and send the shop a request:
//
//	go run . orders 127.0.0.1:8081
//	ORDERS_URL=http://127.0.0.1:8081 go run . shop 127.0.0.1:8080
//	curl -i http://127.0.0.1:8080/checkout
//
// Copy telemetry.go. The gateway is a reverse proxy for services that cannot be changed:
//
//	BACKEND_URL=http://127.0.0.1:8081 go run . gateway 127.0.0.1:8082
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

// services are the programs, besides the gateway.
var services = map[string]http.HandlerFunc{"shop": checkout, "orders": order}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	if len(args) != 2 || args[0] != "gateway" && services[args[0]] == nil {
		return errors.New("usage: shop ADDRESS, orders ADDRESS or gateway ADDRESS")
	}
	name, address := args[0], args[1]
	ids, stopTelemetry, err := startTelemetry(ctx, name)
	if err != nil {
		return err
	}
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(services[name]), name)
	if name == "gateway" {
		handler, err = newGateway(ids)
	}
	if err == nil {
		probes := http.NewServeMux() // not for the outside
		probes.Handle("/ready", ids.ReadyHandler())
		probes.Handle("/metrics", promhttp.Handler())
		err = serve(ctx, name, address, handler, probes)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*time.Second)
	defer cancel()
	return errors.Join(err, stopTelemetry(ctx))
}

// serve serves requests at an address, and probes at PROBE_ADDRESS, until ctx ends. Requests then
// have 5 s, and streams that are still open one more.
func serve(ctx context.Context, name, address string, handler, probes http.Handler) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	ended := make(chan error, 2)
	err := listen(server, name, address, ended)
	if address := os.Getenv("PROBE_ADDRESS"); address != "" && err == nil {
		server := &http.Server{Handler: probes, ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		err = listen(server, name, address, ended)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
		}
	}
	for _, limit := range []time.Duration{5 * time.Second, time.Second} {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if server.Shutdown(last) == nil {
			return err
		}
		cut()
	}
	return errors.Join(err, errors.New("requests did not end"))
}

// listen starts to serve at an address.
func listen(server *http.Server, name, address string, ended chan<- error) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s serves http://%s\n", name, listener.Addr())
	go func() { ended <- server.Serve(listener) }()
	return nil
}

// client starts a span for each request and sends its IDs along.
var client = http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}

// checkout is the handler of shop: it calls orders.
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
