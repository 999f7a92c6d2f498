package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// variable has the address of an etcd, as host:port, in which the tests may write.
const variable = "TEST_ETCD"

// address returns it.
func address(tb testing.TB) string {
	tb.Helper()
	a := os.Getenv(variable)
	if a == "" {
		const why = "no etcd: run this in the repository, `go run ./integration/servers/with go test ./lease/etcdstore`, or set " +
			variable + " to host:port"
		if os.Getenv("CI") != "" {
			tb.Fatal(why)
		}
		tb.Skip(why)
	}
	return a
}

func newClient(tb testing.TB, address string) *clientv3.Client {
	tb.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// newPrefix returns a prefix whose keys are deleted when the test ends.
func newPrefix(tb testing.TB) string {
	tb.Helper()
	prefix := "/traceflake-test/" + rand.Text() + "/"
	tb.Cleanup(func() {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{address(tb)}})
		if err == nil {
			_, err = c.Delete(context.Background(), prefix, clientv3.WithPrefix())
			_ = c.Close()
		}
		if err != nil {
			tb.Error(err)
		}
	})
	return prefix
}

// What a Server must do, on a real etcd.
func TestServer(t *testing.T) {
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		prefix, proxy := newPrefix(tb), pagestest.NewProxy(tb, address(tb))
		return pagestest.Storage{
			Open: func() (pages.Server, error) {
				c := &connection{client: newClient(tb, proxy.Address())}
				return &server{connection: c, prefix: prefix}, nil
			},
			Delete: func(name string) error {
				_, err := newClient(tb, address(tb)).Delete(tb.Context(), prefix+name)
				return err
			},
			Stall: proxy.Stall,
		}
	})
}

// create creates a store, as an operator does.
func create(tb testing.TB, s driver.Store, err error) {
	tb.Helper()
	d, invalid := driver.NewDescription(lease.Description{LongestTTL: lease.MaxTTL})
	if err = errors.Join(err, invalid); err == nil {
		err = s.Create(tb.Context(), d)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// request is for a minute.
func request(now time.Time) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: time.Minute}
}

// renewal moves a grant's end by a minute.
func renewal(g lease.Grant) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: g.End.Add(time.Minute - lease.MaxTTL), TTL: lease.MaxTTL}
}

// wantError checks that an error is the sentinel, if there is one, and says every text, but no
// password.
func wantError(tb testing.TB, what string, err, sentinel error, texts ...string) {
	tb.Helper()
	if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
		tb.Errorf("%s: got error %v, want %v", what, err, sentinel)
		return
	}
	for _, text := range append(texts, "etcdstore: ") {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("%s: error %q does not say %q", what, err, text)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		tb.Errorf("%s: error %q has the password", what, err)
	}
}

// empty answers each transaction as no etcd does: without a response to any operation.
type empty struct{ clientv3.KV }

type emptyTxn struct{ clientv3.Txn }

func (empty) Txn(context.Context) clientv3.Txn      { return emptyTxn{} }
func (t emptyTxn) If(...clientv3.Cmp) clientv3.Txn  { return t }
func (t emptyTxn) Then(...clientv3.Op) clientv3.Txn { return t }
func (t emptyTxn) Else(...clientv3.Op) clientv3.Txn { return t }
func (emptyTxn) Commit() (*clientv3.TxnResponse, error) {
	return &clientv3.TxnResponse{Succeeded: true}, nil
}

func TestEmptyAnswer(t *testing.T) {
	s := &server{connection: &connection{client: empty{}}}
	if _, err := s.Write(t.Context(), "config", []byte("data"), ""); err == nil || errors.Is(err, pages.ErrChanged) {
		t.Errorf("got error %v, want that the answer is empty", err)
	}
}
