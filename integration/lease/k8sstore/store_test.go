package k8sstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/k8sstore"
)

var wantError = calls.WantError("k8sstore", "secret-of-")

// everything does once what a store can be asked for, on one block.
func everything(s driver.Store) error {
	ctx, now := context.Background(), time.Now()
	d, err := driver.NewDescription(lease.Description{Nodes: 8})
	if err == nil {
		err = s.Create(ctx, d)
	}
	if err != nil {
		return err
	}
	g, err := s.Acquire(ctx, calls.Request(now))
	if err != nil {
		return err
	}
	if g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Second))); err != nil {
		return err
	}
	if _, err := s.Get(ctx, g.Node); err != nil {
		return err
	}
	if _, err := s.Acquire(ctx, calls.Request(now)); !errors.Is(err, lease.ErrNoFreeNode) {
		return err
	}
	if err := s.Release(ctx, g, lease.NewNonce(), now); err != nil {
		return err
	}
	if _, err := s.List(ctx); err != nil {
		return err
	}
	_, err = s.Raise(ctx, now)
	return err
}

// The four verbs are enough, and each is needed: without it the error says which. So it does if the
// user or the namespace does not exist.
func TestRights(t *testing.T) {
	s := server(t)
	verbs := []string{"get", "list", "create", "update"}
	for _, missing := range append(verbs, "none") {
		have := slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == missing })
		in := "without-" + missing
		grantRights(t, s, in, have)
		store, err := k8sstore.New(s.Client(kubernetes.Limited), s.URL(), in)
		if err != nil {
			t.Fatal(err)
		}
		if err = everything(store); missing == "none" {
			if err != nil {
				t.Errorf("with all four verbs: %v", err)
			}
			continue
		}
		wantError(t, in, err, lease.ErrMisconfigured, fmt.Sprintf("may not %s leases.coordination.k8s.io in namespace %q", missing, in))
	}
	for _, c := range []struct{ user, namespace, text string }{
		{kubernetes.Limited, namespace, "get, list, create and update"}, // without a role
		{kubernetes.Admin, "nowhere", `there is no namespace "nowhere": create it`},
		{"nobody", namespace, "credentials"},
	} {
		store, err := k8sstore.New(s.Client(c.user), s.URL(), c.namespace)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, c.user+" in "+c.namespace, everything(store), lease.ErrMisconfigured, c.text)
	}
}

// grantRights makes a namespace in which the limited user has rights to Leases.
func grantRights(t *testing.T, s *kubernetes.Server, namespace string, verbs []string) {
	t.Helper()
	apply(t, s, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leases, namespace: %[1]s}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [%[2]s]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leases, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: %[3]s}
`, namespace, strings.Join(verbs, ", "), kubernetes.Limited))
	// The server takes up a role after a moment.
	body := fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": %q, "resourceAttributes":
		{"verb": %q, "group": "coordination.k8s.io", "resource": "leases", "namespace": %q}}}`, kubernetes.Limited, verbs[0], namespace)
	for range 200 {
		answer, err := s.Do(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(answer), `"allowed":true`) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s may not %s in %s after 10 s", kubernetes.Limited, verbs[0], namespace)
}

// before calls a function before each request of a method is sent.
type before struct {
	http.RoundTripper
	method string
	call   func(*http.Request)
}

func (b before) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == b.method {
		b.call(r)
	}
	return b.RoundTripper.RoundTrip(r)
}

// Somebody deletes an object, or replaces it by another of the same name, between
// a read and the write that follows. The write makes nothing.
func TestDeletedObjects(t *testing.T) {
	s := server(t)
	ctx, now := t.Context(), time.Now()
	name := newName()
	path := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
	object := path + "/" + name + ".page-0000"
	stored := storage(s.Client(kubernetes.Admin), s.URL(), namespace, name)
	stored.Create(t, lease.Description{Nodes: 128})
	store := stored.Client(t)
	created, err := s.Do(ctx, http.MethodGet, object, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(created, &o); err != nil {
		t.Fatal(err)
	}
	metadata := o["metadata"].(map[string]any)
	delete(metadata, "uid")
	delete(metadata, "resourceVersion")
	empty, err := json.Marshal(o) // the page before there was a grant on it
	if err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		g, err := store.Acquire(ctx, calls.Request(now))
		if err != nil {
			t.Fatal(err)
		}
		writes := 0
		client := &http.Client{Transport: before{s.Client(kubernetes.Admin).Transport, http.MethodPut, func(*http.Request) {
			if writes++; writes > 1 {
				return
			}
			if _, err := s.Do(ctx, http.MethodDelete, object, "", nil); err != nil {
				t.Error(err)
			}
			if !again {
				return
			}
			if _, err := s.Do(ctx, http.MethodPost, path, "application/json", empty); err != nil {
				t.Error(err)
			}
		}}}
		raced := storage(client, s.URL(), namespace, name).Client(t)
		_, err = raced.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End.Add(time.Minute)))
		wantError(t, "renew a grant on an object that was deleted", err, map[bool]error{false: lease.ErrReplaced, true: lease.ErrLost}[again])
		if writes != 1 {
			t.Errorf("%d writes, want 1", writes)
		}
		_, err = s.Do(ctx, http.MethodGet, object, "", nil)
		if f := (*kubernetes.Failure)(nil); !again && (!errors.As(err, &f) || f.Code != http.StatusNotFound) {
			t.Errorf("the object that was deleted is there: %v", err)
		}
		if !again { // put back what it had
			if _, err := s.Do(ctx, http.MethodPost, path, "application/json", empty); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What operators see, and how large it is.
func TestObjects(t *testing.T) {
	s := server(t)
	ctx, now := t.Context(), time.Now()
	name := newName()
	stored := storage(s.Client(kubernetes.Admin), s.URL(), namespace, name)
	stored.Create(t, lease.Description{First: 1024, Nodes: 1024})
	store := stored.Client(t)
	for range 128 {
		r := calls.Request(now)
		r.Owner = "orders-7c9d8b6f5-x2x4z/1/2026-11-22T02:00:00Z"
		if _, err := store.Acquire(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	data, err := s.Do(ctx, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/"+namespace+
		"/leases?labelSelector=traceflake.github.io/leases="+name, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name                string
				Labels, Annotations map[string]string
			}
			Spec map[string]any
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 || list.Items[0].Metadata.Name != name+".config" || list.Items[1].Metadata.Name != name+".page-0001" ||
		list.Items[2].Metadata.Name != name+".probe" {
		t.Fatalf("the objects are %s", data)
	}
	page := list.Items[1]
	if len(page.Metadata.Labels) != 1 || len(page.Metadata.Annotations) != 1 || len(page.Spec) != 0 {
		t.Errorf("a page is %+v", page)
	}
	n := len(page.Metadata.Annotations["traceflake.github.io/page"])
	t.Logf("a full page has %d bytes, a list of it and the configuration %d", n, len(data))
	if n > 32<<10 {
		t.Errorf("a full page has %d bytes, the documentation says 32 kB", n)
	}
}

// A fleet of 10000 processes sends at most 70 requests a second.
func TestRequestsOfAFleet(t *testing.T) {
	s := server(t)
	c, name := calls.Count(s.Client(kubernetes.Admin).Transport), newName()
	stored := storage(&http.Client{Transport: c}, s.URL(), namespace, name)
	stored.Create(t, lease.Description{})
	calls.Fleet(t, c, 300, 4, stored.Open) // fewer would be at once in a fleet
}

// The requests of an operator: a list has all 130 objects in a response.
func TestRequestsOfAnOperator(t *testing.T) {
	s := server(t)
	ctx, c := t.Context(), calls.Count(s.Client(kubernetes.Admin).Transport)
	stored := storage(&http.Client{Transport: c}, s.URL(), namespace, newName())
	stored.Create(t, lease.Description{})
	t.Logf("create: %v", c.Take())
	store := stored.Client(t)
	if _, err := store.Raise(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	t.Logf("raise: %v", c.Take())
	blocks, err := store.List(ctx)
	if got := fmt.Sprint(c.Take()); err != nil || len(blocks) != 16384 || got != "map[LIST:1]" {
		t.Errorf("a list of %d blocks took %s requests, %v; want one LIST", len(blocks), got, err)
	}
}
