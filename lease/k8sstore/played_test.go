package k8sstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

// Responses of servers, proxies and others. No request is sent twice.
func TestResponses(t *testing.T) {
	status := func(kind string) string {
		return fmt.Sprintf(`{"kind": "Status", "message": "why", "details": {"kind": %q}}`, kind)
	}
	changed := func(old, now string) string { return strings.Replace(aLease, old, now, 1) }
	const writes, all, other = "create replace", "read create replace",
		"not a response of a Kubernetes"
	try := calls.Responses(t,
		func(h http.HandlerFunc) driver.Objects { return played(t, h) }, wantError)
	try("read", 404, nil, status("leases"), "", "")
	try(writes, 404, nil, status("leases"), "changed", "")
	try("read", 409, nil, status("leases"), "unknown", "get leases.coordination.k8s.io")
	try(writes, 409, nil, status("leases"), "changed", "")
	try(all, 404, nil, status("namespaces"), "misconfigured", `create the namespace "shop"`)
	try("create", 403, nil, status(""), "misconfigured", "create leases.coordination.k8s.io")
	try(all, 403, nil, status(""), "misconfigured", "Role get, create and update")
	try(writes, 403, nil, "<html>squid", "misconfigured", "NO_PROXY")
	try(writes, 401, nil, "log in", "misconfigured", "credentials")
	try(all, 503, nil, "<html>", "unknown", `503: "<html>"`)
	try(writes, 404, nil, "page not found", "unknown", other)
	try("read", 200, nil, "<html>", "misconfigured", other)
	try(writes, 200, nil, "<html>", "unknown", other)
	try("read", 302, http.Header{"Location": {"/"}}, "", "misconfigured", other)
	try(writes, 302, http.Header{"Location": {"/"}}, "", "unknown", other)
	try("read", 200, nil, `{"kind": "Pod"}`, "misconfigured", other)
	try("read", 200, nil, changed("page-0001", "page-0002"), "misconfigured", other)
	try(writes, 200, nil, changed("page-0001", "page-0002"), "unknown", other)
	try(all, 429, nil, "", "again", "throttles")
	try(all, 0, nil, "", "unknown", "EOF")
	try(all, 200, nil, changed(`"uid"`, `"deletionTimestamp": "now", "uid"`), "unknown",
		"being deleted")
	try(all, 200, nil, changed(`/leases": "orders"`, `/leases": "carts"`), "schema",
		"not a page of this store")
	try(all, 200, nil, changed("io/page", "io/other"), "schema", "not a page of this store")
	_, err := played(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	}).Read(t.Context(), "page-0001")
	if busy, ok := errors.AsType[*driver.TryAgain](err); !ok || busy.After != 2*time.Second {
		t.Errorf("throttled: %v, %+v", err, busy)
	}
}

// A server replays each recorded answer.
func TestAnswers(t *testing.T) {
	calls.Answers(t, answers, func(row driver.Answer, message string) error {
		status := map[string]int{"namespaces": 404, "proxy": 403, "other": 404}[row.Code]
		body := []byte(message)
		if n, err := strconv.Atoi(row.Code); err == nil {
			status = n
		}
		if row.Code != "proxy" && row.Code != "other" {
			body, _ = json.Marshal(map[string]any{"kind": "Status", "message": message,
				"details": map[string]string{"kind": row.Code}})
		}
		_, err := played(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}).Read(t.Context(), "page-0001")
		return err
	}, "{namespace}", `"shop"`)
}
