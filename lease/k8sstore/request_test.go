package k8sstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// at returns the objects of a server that answers with h.
func at(t *testing.T, h http.HandlerFunc) *objects {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c := connection{client: &http.Client{CheckRedirect: noRedirect, Transport: unrepeatable{t}}, server: server.URL}
	return &objects{connect: func() connection { return c }, namespace: "shop", name: "orders"}
}

// unrepeatable fails the test if a transport could send a body twice.
type unrepeatable struct{ t *testing.T }

func (u unrepeatable) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.GetBody != nil {
		u.t.Errorf("%s can be sent twice", r.Method)
	}
	return http.DefaultTransport.RoundTrip(r)
}

const aLease = `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "orders.page-0001", "uid": "u", ` +
	`"resourceVersion": "7", "labels": {"traceflake.github.io/leases": "orders"}, "annotations": {"traceflake.github.io/page": "data"}}}`

// Responses of servers, proxies and other things, and what is made of them.
func TestResponses(t *testing.T) {
	none := errors.New("no sentinel")
	failure := func(code int, details, message string) string {
		return fmt.Sprintf(`{"kind": "Status", "code": %d, "message": %q, "details": %s}`, code, message, details)
	}
	for _, c := range []struct {
		name        string
		code        int
		body        string
		read, write error // nil stands for success
		text        string
	}{
		{"a page", 200, aLease, nil, nil, ""},
		{"no page", 404, failure(404, `{"kind": "leases"}`, "not found"), nil, pages.ErrChanged, ""},
		{"written meanwhile", 409, failure(409, `{"kind": "leases"}`, "conflict"), none, pages.ErrChanged, "conflict"},
		{"no namespace", 404, failure(404, `{"kind": "namespaces"}`, "not found"), lease.ErrMisconfigured, lease.ErrMisconfigured, `no namespace "shop"`},
		{"no rights", 403, failure(403, `{}`, `User "x" cannot VERB resource "leases"`), lease.ErrMisconfigured, lease.ErrMisconfigured, `may not VERB leases.coordination.k8s.io in namespace "shop"`},
		{"a quota", 403, failure(403, `{}`, "exceeded quota"), lease.ErrMisconfigured, lease.ErrMisconfigured, "exceeded quota"},
		{"unauthorized", 401, failure(401, `{}`, "Unauthorized"), lease.ErrMisconfigured, lease.ErrMisconfigured, "credentials"},
		{"unauthorized by a proxy", 401, "log in", lease.ErrMisconfigured, lease.ErrMisconfigured, "credentials"},
		{"away", 503, "<html>", none, none, `503: "<html>"`},
		{"failed", 500, failure(500, `{}`, "etcdserver: timeout"), none, none, "etcdserver: timeout"},
		{"another server", 404, "404 page not found", lease.ErrMisconfigured, none, "no API server of Kubernetes"},
		{"a web site", 200, "<html>", lease.ErrMisconfigured, none, `no API server of Kubernetes`},
		{"a redirect", 302, "", lease.ErrMisconfigured, none, "no API server of Kubernetes"},
		{"another kind", 200, `{"kind": "Pod"}`, lease.ErrMisconfigured, none, "no API server of Kubernetes"},
		{"another object", 200, strings.Replace(aLease, "page-0001", "page-0002", 1), lease.ErrMisconfigured, none, "no API server of Kubernetes"},
		{"being deleted", 200, strings.Replace(aLease, `"metadata": {`, `"metadata": {"deletionTimestamp": "2026-11-22T01:02:03Z", `, 1), none, none, "being deleted"},
		{"no label", 200, strings.Replace(aLease, `/leases": "orders"`, `/leases": "carts"`, 1), lease.ErrSchemaVersion, lease.ErrSchemaVersion, "not a page of this store"},
		{"no annotation", 200, strings.Replace(aLease, "io/page", "io/other", 1), lease.ErrSchemaVersion, lease.ErrSchemaVersion, "not a page of this store"},
	} {
		asked := ""
		o := at(t, func(w http.ResponseWriter, r *http.Request) {
			if c.code == http.StatusFound && r.URL.Path != "/elsewhere" {
				w.Header().Set("Location", "/elsewhere")
			} else if r.URL.Path == "/elsewhere" {
				t.Errorf("%s: the redirect was followed", c.name)
			}
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, strings.ReplaceAll(c.body, "VERB", asked))
		})
		for _, try := range []struct {
			verb string
			want error
			call func() error
		}{
			{"get", c.read, func() error { _, err := o.Read(t.Context(), "page-0001"); return err }},
			{"create", c.write, func() error { _, err := o.Write(t.Context(), "page-0001", []byte("data"), ""); return err }},
			{"update", c.write, func() error { _, err := o.Write(t.Context(), "page-0001", []byte("data"), "u/7"); return err }},
		} {
			asked = try.verb
			err := try.call()
			if try.want == nil || errors.Is(try.want, pages.ErrChanged) {
				if !errors.Is(err, try.want) {
					t.Errorf("%s: %s: got error %v, want %v", c.name, try.verb, err, try.want)
				}
				continue
			}
			wantText(t, c.name+": "+try.verb, err, try.verb+" leases.coordination.k8s.io", strings.ReplaceAll(c.text, "VERB", try.verb))
			for _, sentinel := range []error{lease.ErrMisconfigured, lease.ErrSchemaVersion, pages.ErrChanged} {
				if is := errors.Is(err, sentinel); is != errors.Is(try.want, sentinel) {
					t.Errorf("%s: %s: %v: that it is %v is %t", c.name, try.verb, err, sentinel, is)
				}
			}
		}
	}
}

func TestTimeIsTheServers(t *testing.T) {
	o := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Sun, 22 Nov 2026 02:03:04 GMT")
		_, _ = io.WriteString(w, aLease)
	})
	read, err := o.Read(t.Context(), "page-0001")
	want := time.Date(2026, 11, 22, 2, 3, 4, 0, time.UTC)
	if err != nil || !read.Time.Equal(want) || read.Version != "u/7" || string(read.Data) != "data" {
		t.Errorf("read: got %+v, %v", read, err)
	}
	written, err := o.Write(t.Context(), "page-0001", []byte("data"), "u/6")
	if err != nil || written.Version != "u/7" || string(written.Data) != "data" { // which is compared with what was sent
		t.Errorf("write: got %+v, %v", written, err)
	}
}

// A throttled request was not carried out: the store sends it again after Retry-After.
func TestThrottling(t *testing.T) {
	for header, want := range map[string]time.Duration{"2": 2 * time.Second, "": time.Second, "-5": time.Second, "86400": time.Hour} {
		o := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := o.Write(t.Context(), "page-0001", nil, "")
		wantText(t, "throttled", err, "throttles", "create leases")
		if busy := (*pages.Busy)(nil); !errors.As(err, &busy) || busy.After != want {
			t.Errorf("Retry-After %q: %#v, want %s", header, err, want)
		}
	}
}

// The connection breaks after a write was received, and one that was used before
// breaks before anything is received. No write is received twice.
func TestNoWriteIsSentTwice(t *testing.T) {
	for _, version := range []string{"", "u/6"} {
		var received atomic.Int64
		o := at(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, aLease)
				return
			}
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
			received.Add(1)
			panic(http.ErrAbortHandler)
		})
		for range 10 {
			received.Store(0)
			if _, err := o.Read(t.Context(), "page-0001"); err != nil { // makes a connection that is used again
				t.Fatal(err)
			}
			_, err := o.Write(t.Context(), "page-0001", []byte("data"), version)
			if err == nil || errors.Is(err, pages.ErrChanged) || errors.Is(err, lease.ErrMisconfigured) {
				t.Errorf("a write without a response: %v", err)
			}
			if n := received.Load(); n != 1 {
				t.Errorf("the server received the write %d times", n)
			}
		}
	}
}

// Lists of many objects have several responses, of one moment. If the server has
// forgotten it, the list begins anew.
func TestLongList(t *testing.T) {
	forgot := false
	o := at(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("labelSelector") != "traceflake.github.io/leases=orders" || q.Get("limit") == "" ||
			!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			t.Errorf("the request is %s with %v", r.URL, r.Header)
		}
		list := func(next, items string) {
			_, _ = fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "metadata": {"continue": %q}, "items": [%s]}`, next, items)
		}
		item := func(name, version string) string {
			return fmt.Sprintf(`{"metadata": {"name": %q, "uid": "u", "resourceVersion": %q}}`, name, version)
		}
		switch q.Get("continue") {
		case "":
			if !forgot {
				list("old", item("orders.page-0001", "0")+","+item("orders.page-0004", "0"))
				return
			}
			whole := strings.Replace(item("orders.page-0002", "1"), `"metadata": {`, `"metadata": {"annotations": {"traceflake.github.io/page": "data"}, `, 1)
			gone := strings.Replace(strings.Replace(whole, "page-0002", "page-0001", 1), `{"annotations"`, `{"deletionTimestamp": "2026-11-22T01:02:03Z", "annotations"`, 1)
			list("old", gone+","+whole)
		case "old":
			if !forgot {
				forgot = true
				w.WriteHeader(http.StatusGone)
				_, _ = io.WriteString(w, `{"kind": "Status", "code": 410}`)
				return
			}
			list("", item("orders.page-0003", "3")+","+item("by-hand", "1"))
		}
	})
	got, err := o.List(t.Context())
	want := map[string]pages.Object{
		"page-0001": {Version: "u/1"}, "page-0002": {Version: "u/1", Data: []byte("data")}, "page-0003": {Version: "u/3"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// The token is read for each request, and the last one is used while the files are being replaced.
func TestTokenIsReadAgain(t *testing.T) {
	valid := "one"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"kind": "Status", "message": "Unauthorized", "code": 401}`)
			return
		}
		_, _ = io.WriteString(w, aLease)
	}))
	defer server.Close()
	dir := inPod(t, server)
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	p, err := newPod(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{connect: p.connect, namespace: "shop", name: "orders"}
	read := func() error {
		_, err := o.Read(t.Context(), "page-0001")
		return err
	}
	if err := read(); err != nil {
		t.Error(err)
	}
	valid = "two"
	err = read()
	wantText(t, "a token that is over", err, "credentials", "401")
	if !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("a token that is over: %v", err)
	}
	write(t, token, "two")
	if err := read(); err != nil {
		t.Errorf("a new token: %v", err)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("the file is missing: %v", err)
	}
	valid = "three"
	wantText(t, "the file is missing, the token over", read(), "401", filepath.Join(dir, "token"), "automountServiceAccountToken")
	valid = "two"
	write(t, token, "three")
	write(t, ca, "half")
	if err := read(); err != nil {
		t.Errorf("half a certificate: %v", err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
