package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/settings"
	"github.com/traceflake/traceflake/traceid"
)

// startProxy runs the command until the test ends and returns the addresses on which it listens,
// and the lines that it logs.
func startProxy(
	t *testing.T, count int, args ...string,
) (addresses []string, logged <-chan string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	errOut, w := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(ctx, append([]string{"proxy", "--listen", "127.0.0.1:0"}, args...), nil,
			io.Discard, w)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	scanner := bufio.NewScanner(errOut)
	for range count {
		if !scanner.Scan() {
			t.Fatal("the proxy does not listen")
		}
		addresses = append(addresses, strings.TrimPrefix(scanner.Text(), "listening on "))
	}
	lines := make(chan string, 100)
	go func() {
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return addresses, lines
}

func fetch(t *testing.T, address string, headers ...string) (body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The proxy bounds a lookup of an ID that it verifies, repeats it if nothing was found, passes
// headers, and counts.
func TestProxy(t *testing.T) {
	t.Setenv(settings.Store, "file:"+filepath.Join(t.TempDir(), "leases"))
	ids := lines(command(t, "", "new", "-n", "2").out)
	recent, missing := ids[0], ids[1]
	id, err := trace.TraceIDFromHex(recent)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bounded := r.URL.Query().Has("start"); bounded &&
			strings.HasSuffix(r.URL.Path, missing) {
			http.Error(w, "trace not found", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, "%s?%s for %s %300s", r.URL.Path, r.URL.RawQuery,
			r.Header.Get("X-Scope-OrgID"), "and the trace")
	}))
	t.Cleanup(server.Close)
	at, _ := startProxy(t, 2, "--metrics", "127.0.0.1:0", "--slack", "2h", "--verify",
		server.URL+"/prefix")
	path := "/api/v2/traces/"
	start := fmt.Sprintf("start=%d ", traceid.Time(id).Add(-2*time.Hour).Unix())
	if got := fetch(t, at[0]+path+recent, "X-Scope-OrgID", "team-a"); !strings.Contains(got,
		start) || !strings.Contains(got, "for team-a") ||
		!strings.HasPrefix(got, "/prefix/api/v2/traces/") {
		t.Errorf("recent: %s", got)
	}
	if got := fetch(t, at[0]+path+missing); !strings.HasPrefix(got, "/prefix"+path+missing+"? ") {
		t.Errorf("repeated: %s", got)
	}
	if got := fetch(t, at[0]+path+recent[:16]+"0123456789abcdef"); strings.Contains(got, "start=") {
		t.Errorf("foreign: %s", got)
	}
	if got := fetch(t, at[0]+"/api/search?q=x"); !strings.HasPrefix(got,
		"/prefix/api/search?q=x ") {
		t.Errorf("search: %s", got)
	}
	// Go cannot parse this query.
	if got := fetch(t, at[0]+"/api/search?a=%zz&b=1;c=2"); !strings.HasPrefix(got,
		"/prefix/api/search?a=%zz&b=1;c=2 ") {
		t.Errorf("query: %s", got)
	}
	metrics := fetch(t, at[1]+"/metrics")
	for _, want := range []string{
		`traceflake_lookup_duration_seconds_count{` +
			`http_response_status_code="200",outcome="bounded",traceflake_backend="tempo"} 1`,
		`outcome="repeated"`, `outcome="foreign"`, `le="0.25"`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s:\n%s", want, metrics)
		}
	}
	if got := fetch(t, at[1]+"/healthz"); got != "ok\n" {
		t.Errorf("health: %q", got)
	}
}

// Failures on the way to the server are in the response and in the log; a client that goes away is
// in neither.
func TestProxyErrors(t *testing.T) {
	arrived, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/traces/") { // a header is no answer yet
			_, _ = io.WriteString(w, "hello")
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	slow, slowLog := startProxy(t, 1, "--timeout", "500ms", server.URL)
	gone := httptest.NewServer(nil)
	gone.Close()
	nobody, nobodyLog := startProxy(t, 1, gone.URL)
	path := "/api/traces/" + lines(command(t, "", "new").out)[0]
	for _, c := range []struct {
		address string
		log     <-chan string
		path    string
		status  int
		cause   string
	}{
		{slow[0], slowLog, "/api/sea%0Arch", http.StatusGatewayTimeout, "timeout"},
		{slow[0], slowLog, path, http.StatusGatewayTimeout, "deadline exceeded"},
		{nobody[0], nobodyLog, path, http.StatusBadGateway, "connection refused"},
	} {
		resp, err := http.Get(c.address + c.path + "?q=secret")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		for _, text := range []string{string(body), <-c.log} {
			if err != nil || resp.StatusCode != c.status ||
				!strings.Contains(text, "GET "+c.path+": ") || !strings.Contains(text, c.cause) {
				t.Errorf("%s, %q, %v; want %d, %s", resp.Status, text, err, c.status, c.cause)
			}
		}
	}

	for range 2 {
		<-arrived
		<-ended
	}
	patient, patientLog := startProxy(t, 1, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, patient[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-arrived; cancel() }()
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
	select {
	case line := <-patientLog:
		t.Errorf("logged %s", line)
	case <-time.After(300 * time.Millisecond):
	}
	server.Close()
}

// Concurrent lookups reuse their connections to the server.
func TestProxyConnections(t *testing.T) {
	var opened atomic.Int32
	slow := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		http.NotFound(w, r)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(slow))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	at, _ := startProxy(t, 1, server.URL)
	path := "/api/traces/" + lines(command(t, "", "new").out)[0]
	const clients, each = 20, 10
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for range each {
				fetch(t, at[0]+path)
			}
		})
	}
	wait.Wait()
	if n := opened.Load(); n > 4*clients { // with 2 idle ones 126
		t.Errorf("%d clients with %d lookups each opened %d connections", clients, each, n)
	}
}

// The headers in which earlier proxies describe the client arrive, with this hop. grpc-web is plain
// HTTP.
func TestProxyForwards(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"For", "Host", "Proto"} {
			fmt.Fprintf(w, "%s, ", r.Header.Get("X-Forwarded-"+name))
		}
		fmt.Fprint(w, r.Header.Get("Forwarded"))
	}))
	t.Cleanup(server.Close)
	at, _ := startProxy(t, 1, server.URL)
	host := strings.TrimPrefix(at[0], "http://")
	if got, want := fetch(t, at[0]), "127.0.0.1, "+host+", http, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got := fetch(t, at[0], "Content-Type", "application/grpc-web+proto",
		"Forwarded", "for=10.0.0.1;proto=https", "X-Forwarded-For", "10.0.0.1",
		"X-Forwarded-Host", "traces.example", "X-Forwarded-Proto", "https")
	const want = "10.0.0.1, 127.0.0.1, traces.example, https, for=10.0.0.1;proto=https"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// By default a request that may still take its whole time is served to its end.
func TestProxyGrace(t *testing.T) {
	for _, c := range []struct{ grace, timeout, want time.Duration }{
		{0, 30 * time.Second, 30 * time.Second},
		{0, 0, time.Minute},
		{time.Second, 30 * time.Second, time.Second},
	} {
		p := proxy{grace: c.grace, timeout: c.timeout}
		if got := p.drain(); got != c.want {
			t.Errorf("grace %s, timeout %s: %s, want %s", c.grace, c.timeout, got, c.want)
		}
	}
}
