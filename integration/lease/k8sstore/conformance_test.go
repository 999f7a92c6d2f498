package k8sstore_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/k8sstore"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) {
	leasetest.Worker()
	kubernetes.Main(m)
}

// namespace has the stores of the tests, each with a name of its own.
const namespace = "fleet"

var (
	names atomic.Int64
	setUp sync.Once
)

func newName() string { return fmt.Sprintf("store-%d", names.Add(1)) }

// server returns the server of all tests that leave it alone, with a namespace.
func server(tb testing.TB) *kubernetes.Server {
	tb.Helper()
	s := kubernetes.Shared(tb)
	setUp.Do(func() { apply(tb, s, namespaceObject) })
	return s
}

const namespaceObject = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"

func apply(tb testing.TB, s *kubernetes.Server, objects string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Apply(ctx, objects); err != nil {
		tb.Fatal(err)
	}
}

// harness makes each storage a name of its own.
func harness(client *http.Client, server string) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(testing.TB) leasetest.Storage {
		return storage(client, server, namespace, newName())
	}}
}

func storage(client *http.Client, server, namespace, name string) leasetest.Storage {
	return leasetest.Storage{Open: func() (driver.Store, error) {
		return k8sstore.New(client, server, namespace, name)
	}}
}

func TestConformance(t *testing.T) {
	s := server(t)
	leasetest.Run(t, harness(s.Client(kubernetes.Admin), s.URL()))
}
