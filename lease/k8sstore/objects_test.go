package k8sstore

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

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
		path: path, query: query}, &ignored)
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

// Objects that were exported, and are applied again, have another place.
func TestCopies(t *testing.T) {
	s, copied := newStorage(t), newStorage(t)
	original := calls.NewPlace(t, s.open(s.server))
	original.Ignores = true
	apply := func(to storage) {
		t.Helper()
		o := to.open(to.server)
		r, err := o.write("config", original.Data, "")
		if err == nil {
			_, err = o.page(t.Context(), "config", r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(copied)
	original.Refuses(t, copied.open(s.server))
	if err := s.remove("/"+s.name+".config", ""); err != nil {
		t.Fatal(err)
	}
	apply(s)
	original.Refuses(t, s.open(s.server))
}
