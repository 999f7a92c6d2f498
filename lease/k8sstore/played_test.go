package k8sstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

var wantError = calls.WantError("", "hunter2")

// played returns the objects of a server whose responses are those of h.
func played(t *testing.T, h http.HandlerFunc) *objects {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o := &objects{client: &http.Client{Transport: unrepeatable{t}}, server: server.URL,
		namespace: "shop", name: "orders"}
	if _, err := o.store(); err != nil {
		t.Fatal(err)
	}
	return o
}

// unrepeatable fails the test if a transport could send a body twice.
type unrepeatable struct{ t *testing.T }

func (u unrepeatable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.GetBody != nil {
		u.t.Errorf("%s can be sent twice", r.Method)
	}
	return http.DefaultTransport.RoundTrip(r)
}

const aLease = `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {` +
	`"name": "orders.page-0001", "uid": "u", "resourceVersion": "7", ` +
	`"labels": {"traceflake.github.io/leases": "orders"}, ` +
	`"annotations": {"traceflake.github.io/page": "data"}}}`

func TestURL(t *testing.T) {
	for url, want := range map[string]string{"k8s://": "default/traceflake",
		"k8s://other/orders/": "other/orders"} {
		s, err := stores.Open(url + "?server=http://127.0.0.1:8001/")
		if err != nil {
			t.Fatal(err)
		}
		o := s.(interface{ Objects() driver.Objects }).Objects().(*objects)
		if got := o.namespace + "/" + o.name; got != want || o.server != "http://127.0.0.1:8001" {
			t.Errorf("%s is %s at %s, want %s", url, got, o.server, want)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, url := range []string{
		"k8s://user:hunter2@shop/?server=http://a",
		"k8s://shop:6443/?server=http://a",
		"k8s://shop/a", // outside of a pod
		"k8s://shop/a?server=etcd://host",
		"k8s://Shop/a?server=http://a",
		"k8s://shop/a/b?server=http://a",
	} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}
	_, err := New(nil, "https://host:6443", "shop", "")
	wantError(t, "no client", err, lease.ErrInvalidRequest)
}

// Responses of servers, proxies and others, and what the store makes of them. No request is sent
// twice.
func TestResponses(t *testing.T) {
	status := func(kind string) string {
		return fmt.Sprintf(`{"kind": "Status", "message": "why", "details": {"kind": %q}}`, kind)
	}
	for _, c := range []struct {
		code        int // or 0 for a broken connection
		body        string
		read, write string // of [calls.Meaning]
		text        string
	}{
		{404, status("leases"), "", "changed", ""},
		{409, status("leases"), "unknown", "changed", ""},
		{404, status("namespaces"), "misconfigured", "misconfigured", `the namespace "shop"`},
		{403, status(""), "misconfigured", "misconfigured", "Role get, create and update"},
		{403, "<html>squid", "misconfigured", "misconfigured", "NO_PROXY"},
		{401, "log in", "misconfigured", "misconfigured", "credentials"},
		{503, "<html>", "unknown", "unknown", `503: "<html>"`},
		{404, "page not found", "misconfigured", "unknown", "not a response of a Kubernetes"},
		{200, "<html>", "misconfigured", "unknown", "not a response of a Kubernetes"},
		{302, "", "misconfigured", "unknown", "not a response of a Kubernetes"},
		{200, `{"kind": "Pod"}`, "misconfigured", "unknown", "not a response of a Kubernetes"},
		{200, strings.Replace(aLease, "page-0001", "page-0002", 1), "misconfigured", "unknown",
			"not a response of a Kubernetes"},
		{0, "", "unknown", "unknown", "EOF"},
		{200, strings.Replace(aLease, `"uid"`, `"deletionTimestamp": "now", "uid"`, 1), "unknown",
			"unknown", "being deleted"},
		{200, strings.Replace(aLease, `/leases": "orders"`, `/leases": "carts"`, 1), "schema",
			"schema", "not a page of this store"},
		{200, strings.Replace(aLease, "io/page", "io/other", 1), "schema", "schema",
			"not a page of this store"},
	} {
		var sent atomic.Int64
		o := played(t, func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			if c.code == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Location", r.URL.Path)
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, c.body)
		})
		_, get := o.Read(t.Context(), "page-0001")
		_, create := o.Write(t.Context(), "page-0001", []byte("data"), "", "")
		_, update := o.Write(t.Context(), "page-0001", []byte("data"), "u/7", "")
		for verb, err := range map[string]error{"get": get, "create": create, "update": update} {
			want := c.write
			if verb == "get" {
				want = c.read
			}
			if got := calls.Meaning(err); got != want {
				t.Errorf("%s: %d %s: %v is %q, want %q", verb, c.code, c.body, err, got, want)
			}
			if want != "" && want != "changed" {
				wantError(t, c.body, err, nil, verb+" leases.coordination.k8s.io", c.text)
			}
		}
		if n := sent.Load(); n != 3 {
			t.Errorf("%d %s: the server received %d requests, want 3", c.code, c.body, n)
		}
	}
}

// A throttled request was not carried out: the store sends it again after Retry-After.
func TestThrottling(t *testing.T) {
	for header, want := range map[string]time.Duration{"2": 2 * time.Second, "": time.Second,
		"86400": time.Hour} {
		_, err := played(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}).Write(t.Context(), "page-0000", nil, "", "")
		if busy, ok := errors.AsType[*driver.TryAgain](err); !ok || busy.After != want {
			t.Errorf("Retry-After %q: %v, %+v, want %s", header, err, busy, want)
		}
	}
}
