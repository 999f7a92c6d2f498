package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// proxy runs the command until the test ends and returns the addresses on which it listens.
func proxy(t *testing.T, count int, args ...string) (addresses []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	errOut, w := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(ctx, append([]string{"proxy", "--listen", "127.0.0.1:0"}, args...), nil, io.Discard, w)
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
	go func() { _, _ = io.Copy(io.Discard, errOut) }()
	return addresses
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
	secret := write(t, "secret", secretA)
	ids := lines(command(t, "", "new", "-n", "2", "--secret-file", secret).out)
	recent, missing := ids[0], ids[1]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bounded := r.URL.Query().Has("start"); bounded && strings.HasSuffix(r.URL.Path, missing) {
			http.Error(w, "trace not found", http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `%s?%s for %s {"spanId":""}`, r.URL.Path, r.URL.RawQuery, r.Header.Get("X-Scope-OrgID"))
	}))
	t.Cleanup(server.Close)
	at := proxy(t, 2, "--metrics", "127.0.0.1:0", "--verify", "--secret-file", secret, server.URL+"/prefix")
	path := "/api/v2/traces/"
	if got := fetch(t, at[0]+path+recent, "X-Scope-OrgID", "team-a"); !strings.Contains(got, "start=") || !strings.Contains(got, "for team-a") ||
		!strings.HasPrefix(got, "/prefix/api/v2/traces/") {
		t.Errorf("recent: %s", got)
	}
	if got := fetch(t, at[0]+path+missing); !strings.HasPrefix(got, "/prefix"+path+missing+"? ") {
		t.Errorf("repeated: %s", got)
	}
	if got := fetch(t, at[0]+path+recent[:16]+"0123456789abcdef"); strings.Contains(got, "start=") {
		t.Errorf("foreign: %s", got)
	}
	if got := fetch(t, at[0]+"/api/search?q=x"); !strings.HasPrefix(got, "/prefix/api/search?q=x ") {
		t.Errorf("search: %s", got)
	}
	metrics := fetch(t, at[1]+"/metrics")
	for _, outcome := range []string{"bounded", "repeated"} {
		if !strings.Contains(metrics, `outcome="`+outcome+`"`) {
			t.Errorf("no outcome %s:\n%s", outcome, metrics)
		}
	}
}
