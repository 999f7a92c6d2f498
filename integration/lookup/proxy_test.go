// Package lookup tests the command's proxy with gRPC, TLS and signals.
package lookup_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// start runs the proxy until the test ends.
func start(t *testing.T, command string, env []string, args ...string) *child.Server {
	t.Helper()
	cmd := exec.Command(command, append([]string{"proxy", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	p := child.Run(t, cmd)
	p.Address = strings.TrimPrefix(child.Await(t, p, 1, child.Served)[0], "http://")
	return p
}

// grpcServer has a health service, whose Watch streams.
func grpcServer(t *testing.T) *grpc.Server {
	t.Helper()
	server := grpc.NewServer()
	services := health.NewServer()
	services.SetServingStatus("search", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, services)
	t.Cleanup(server.Stop)
	return server
}

// healthClient is a client of a proxy, like Grafana for a streamed search.
func healthClient(t *testing.T, p *child.Server) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

// checkGRPC checks calls and a stream through the proxy, and leaves the stream open.
func checkGRPC(t *testing.T, p *child.Server) grpc_health_v1.Health_WatchClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	client := healthClient(t, p)
	if got, err := client.Check(ctx,
		&grpc_health_v1.HealthCheckRequest{Service: "search"}); err != nil ||
		got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("a call: %v, %v", got, err)
	}
	// The status of a call is in its trailers.
	nothing := &grpc_health_v1.HealthCheckRequest{Service: "nothing"}
	if _, err := client.Check(ctx, nothing); status.Code(err) != codes.NotFound {
		t.Errorf("a service that is not there: %v", err)
	}
	stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "search"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil ||
		got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("a stream: %v, %v", got, err)
	}
	return stream
}

func TestProxy(t *testing.T) {
	command := child.Build(t, child.Traceflake)

	// Grafana's streamed search is gRPC without TLS at the data source's URL.
	t.Run("gRPC", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpcServer(t)
		go func() { _ = server.Serve(l) }()
		p := start(t, command, nil, "--grace", "2s", "http://"+l.Addr().String())
		stream := checkGRPC(t, p)
		began := time.Now()
		err = p.Terminate()
		// an open stream delays the end, but not forever
		if took := time.Since(began); took > 10*time.Second || err != nil {
			t.Errorf("the end took %s, %v", took, err)
		}
		if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the stream's end: %v", err)
		}
	})

	t.Run("gRPC with TLS to the server", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewUnstartedServer(grpcServer(t))
		server.EnableHTTP2 = true
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes
		server.StartTLS()
		t.Cleanup(server.Close)
		pool := filepath.Join(t.TempDir(), "roots.pem")
		certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw})
		child.Write(t, pool, string(certificate))
		checkGRPC(t, start(t, command, []string{"SSL_CERT_FILE=" + pool}, server.URL))
		unknown := healthClient(t, start(t, command, nil, server.URL))
		if _, err := unknown.Check(t.Context(),
			&grpc_health_v1.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("an unknown certificate: %v", err)
		}
	})

	t.Run("a proxy on the way", func(t *testing.T) {
		t.Parallel()
		echo := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "to ", r.URL) }
		way := httptest.NewServer(http.HandlerFunc(echo))
		t.Cleanup(way.Close)
		p := start(t, command, []string{"HTTP_PROXY=" + way.URL}, "http://tempo.example:3200")
		_, got := child.Get(t, "http://"+p.Address+"/api/echo")
		if got != "to http://tempo.example:3200/api/echo" {
			t.Errorf("got %q", got)
		}
	})

	// A request that is being served when SIGTERM comes is served to its end.
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		arrived, answer := make(chan struct{}), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(arrived)
			<-answer
			fmt.Fprint(w, "at last")
		}))
		t.Cleanup(server.Close)
		p := start(t, command, nil, server.URL)
		ended := make(chan error)
		go func() {
			<-arrived
			time.AfterFunc(200*time.Millisecond, func() { close(answer) })
			ended <- p.Terminate()
		}()
		_, got := child.Get(t, "http://"+p.Address+"/api/search")
		if err := <-ended; got != "at last" || err != nil {
			t.Errorf("the response is %q, the end %v", got, err)
		}
	})
}
