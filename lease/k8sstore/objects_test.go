package k8sstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/stores"
)

// at returns the objects of a server that answers with h.
func at(t *testing.T, h http.HandlerFunc) *objects {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &objects{client: driver.WithoutRedirects(&http.Client{Transport: unrepeatable{t}}),
		server: server.URL, namespace: "shop", name: "orders"}
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

// Responses of servers, proxies and others, and the resulting errors. No request is sent twice.
func TestResponses(t *testing.T) {
	none := errors.New("no sentinel")
	failure := func(code int, details, message string) string {
		return fmt.Sprintf(`{"kind": "Status", "code": %d, "message": %q, "details": %s}`, code,
			message, details)
	}
	for _, c := range []struct {
		name        string
		code        int
		body        string
		read, write error // nil stands for success
		text        string
	}{
		{"a page", 200, aLease, nil, nil, ""},
		{"no page", 404, failure(404, `{"kind": "leases"}`, "not found"), nil, driver.ErrChanged,
			""},
		{"written meanwhile", 409, failure(409, `{"kind": "leases"}`, "conflict"), none,
			driver.ErrChanged, "conflict"},
		{"no namespace", 404, failure(404, `{"kind": "namespaces"}`, "not found"),
			lease.ErrMisconfigured, lease.ErrMisconfigured, `create the namespace "shop"`},
		{"no rights", 403, failure(403, `{}`, `User "x" cannot VERB resource "leases"`),
			lease.ErrMisconfigured, lease.ErrMisconfigured,
			"Role get, list, create and update"},
		{"a quota", 403, failure(403, `{}`, "exceeded quota"), lease.ErrMisconfigured,
			lease.ErrMisconfigured, "exceeded quota"},
		{"unauthorized", 401, failure(401, `{}`, "Unauthorized"), lease.ErrMisconfigured,
			lease.ErrMisconfigured, "credentials"},
		{"unauthorized by a proxy", 401, "log in", lease.ErrMisconfigured, lease.ErrMisconfigured,
			"credentials"},
		{"away", 503, "<html>", none, none, `503: "<html>"`},
		{"failed", 500, failure(500, `{}`, "etcdserver: timeout"), none, none,
			"etcdserver: timeout"},
		{"another server", 404, "404 page not found", lease.ErrMisconfigured, none,
			"not a response of a Kubernetes"},
		{"a web site", 200, "<html>", lease.ErrMisconfigured, none,
			"not a response of a Kubernetes"},
		{"a redirect", 302, "", lease.ErrMisconfigured, none, "not a response of a Kubernetes"},
		{"another kind", 200, `{"kind": "Pod"}`, lease.ErrMisconfigured, none,
			"not a response of a Kubernetes"},
		{"another object", 200, strings.Replace(aLease, "page-0001", "page-0002", 1),
			lease.ErrMisconfigured, none, "not a response of a Kubernetes"},
		{"a broken connection", 0, "", none, none, "EOF"},
		{"being deleted", 200,
			strings.Replace(aLease, `"metadata": {`,
				`"metadata": {"deletionTimestamp": "2026-11-22T01:02:03Z", `, 1), none, none,
			"being deleted"},
		{"no label", 200, strings.Replace(aLease, `/leases": "orders"`, `/leases": "carts"`, 1),
			lease.ErrSchemaVersion, lease.ErrSchemaVersion, "not a page of this store"},
		{"no annotation", 200, strings.Replace(aLease, "io/page", "io/other", 1),
			lease.ErrSchemaVersion, lease.ErrSchemaVersion, "not a page of this store"},
	} {
		asked := ""
		var sent atomic.Int64
		o := at(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if sent.Add(1); c.code == 0 {
				panic(http.ErrAbortHandler)
			}
			if c.code == http.StatusFound && r.URL.Path != "/elsewhere" {
				w.Header().Set("Location", "/elsewhere")
			} else if r.URL.Path == "/elsewhere" {
				t.Errorf("%s: the redirect was followed", c.name)
			}
			w.Header().Set("Date", "Sun, 22 Nov 2026 02:03:04 GMT")
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "VERB", asked))
		})
		// its data is compared with what was sent
		ctx, page := t.Context(), driver.Object{Data: []byte("data"), Version: "u/7",
			Time: time.Date(2026, 11, 22, 2, 3, 4, 0, time.UTC)}
		for _, try := range []struct {
			verb   string
			want   error
			object driver.Object
			call   func() (driver.Object, error)
		}{
			{"get", c.read, page,
				func() (driver.Object, error) { return o.Read(ctx, "page-0001") }},
			{"create", c.write, page, func() (driver.Object, error) {
				return o.Write(ctx, "page-0001", []byte("data"), "")
			}},
			{"update", c.write, page, func() (driver.Object, error) {
				return o.Write(ctx, "page-0001", []byte("data"), "u/7")
			}},
		} {
			asked = try.verb
			got, err := try.call()
			if n := sent.Swap(0); n != 1 {
				t.Errorf("%s: %s: the server received %d requests", c.name, try.verb, n)
			}
			if try.want == nil || errors.Is(try.want, driver.ErrChanged) {
				if !errors.Is(err, try.want) || c.name == "a page" &&
					!reflect.DeepEqual(got, try.object) {
					t.Errorf("%s: %s: got %+v, error %v, want %v", c.name, try.verb, got, err,
						try.want)
				}
				continue
			}
			wantError(t, c.name+": "+try.verb, err, nil, try.verb+" leases.coordination.k8s.io",
				strings.ReplaceAll(c.text, "VERB", try.verb))
			for _, sentinel := range []error{lease.ErrMisconfigured, lease.ErrSchemaVersion,
				driver.ErrChanged} {
				if is := errors.Is(err, sentinel); is != errors.Is(try.want, sentinel) {
					t.Errorf("%s: %s: %v: that it is %v is %t", c.name, try.verb, err, sentinel, is)
				}
			}
		}
	}
}

// The place is the UID of the object "config": each object has its own.
func TestPlace(t *testing.T) {
	for name, want := range map[string]string{"config": "Lease u", "page-0001": ""} {
		o := at(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Replace(aLease, "page-0001", name, 1))
		})
		if got, err := o.Read(t.Context(), name); err != nil || got.Place != want {
			t.Errorf("%s: the place is %q, %v; want %q", name, got.Place, err, want)
		}
	}
}

// A throttled request was not carried out: the store sends it again after Retry-After.
func TestThrottling(t *testing.T) {
	for header, want := range map[string]time.Duration{"2": 2 * time.Second, "": time.Second,
		"-5": time.Second, "86400": time.Hour} {
		o := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := o.Write(t.Context(), "page-0001", nil, "")
		wantError(t, "throttled", err, nil, "throttles", "create leases")
		if busy := (*driver.TryAgain)(nil); !errors.As(err, &busy) || busy.After != want {
			t.Errorf("Retry-After %q: %#v, want %s", header, err, want)
		}
	}
}

// A list has the data of each page, unless Read must report what is wrong with it.
func TestList(t *testing.T) {
	o := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "labelSelector=traceflake.github.io/leases%3Dorders" {
			t.Errorf("the request is %s", r.URL)
		}
		item := func(name, more string) string {
			return fmt.Sprintf(`{"metadata": {"name": %q, "uid": "u", "resourceVersion": "1"%s}}`,
				name, more)
		}
		const data = `, "annotations": {"traceflake.github.io/page": "data"}`
		_, _ = fmt.Fprintf(w, `{"kind": "LeaseList", "items": [%s, %s, %s, %s]}`,
			item("orders.page-0001", data+`, "deletionTimestamp": "2026-11-22T01:02:03Z"`),
			item("orders.page-0002", data), item("orders.page-0003", ""), item("by-hand", ""))
	})
	got, err := o.List(t.Context())
	want := map[string]driver.Object{
		"page-0001": {Version: "u/1"}, "page-0002": {Version: "u/1", Data: []byte("data")},
		"page-0003": {Version: "u/1"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// storage is a place for objects of a real API server.
type storage struct{ server, name string }

func newStorage(tb testing.TB) storage {
	tb.Helper()
	// without credentials, as that of `kubectl proxy`
	url := calls.Server(tb, "TRACEFLAKETEST_KUBERNETES",
		"http://host:port, where the tests may write and delete Leases in the namespace default")
	s := storage{strings.TrimPrefix(url, "http://"), "test-" + strings.ToLower(rand.Text())}
	tb.Cleanup(func() {
		if err := s.remove("", "labelSelector="+fleetLabel+"%3D"+s.name); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// open returns a client as another process has it.
func (s storage) open(address string) *objects {
	return &objects{client: newClient(""), server: "http://" + address, namespace: "default",
		name: s.name}
}

func (s storage) remove(path, query string) error {
	var ignored struct{}
	o := s.open(s.server)
	_, err := o.do(context.Background(), request{verb: "delete", method: http.MethodDelete,
		path: o.path() + path, query: query}, &ignored)
	return err
}

// The contract of Objects, on a real API server.
func TestServer(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		s := newStorage(tb)
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: s.server,
			Open:   func(address string) (driver.Objects, error) { return s.open(address), nil },
			Delete: func(page string) error { return s.remove("/"+s.name+"."+page, "") },
		}
	})
}

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	s := newStorage(t)
	calls.Restored(t, func() (stores.Store, error) { return s.open(s.server).store() })
}
