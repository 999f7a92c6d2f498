package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// servers are servers in memory, of type *calls.Memory, by the URLs test:NAME of the stores on
// them. The store test:hung does not answer.
var servers sync.Map

func init() {
	stores.Register("test", func(url string) (stores.Store, error) {
		if url == "test:hung" {
			return hung{}, nil
		}
		return stores.New(serverOf(url), driver.Layout{Name: "test", BlocksPerPage: 1024})
	})
}

// hung is a store that does not answer.
type hung struct{ stores.Store }

func (hung) Close() error { return nil }

func (hung) Describe(ctx context.Context) (lease.Description, error) {
	<-ctx.Done()
	return lease.Description{}, ctx.Err()
}

// serverOf returns the server of a store, or a new server without a store.
func serverOf(url string) *calls.Memory {
	s, _ := servers.LoadOrStore(url, &calls.Memory{Objects: memstore.Objects{Clock: time.Now}})
	return s.(*calls.Memory)
}

// newServer returns a server without a store, and the URL of a store on it.
func newServer() (url string, s *calls.Memory) {
	url = "test:" + lease.NewNonce()
	return url, serverOf(url)
}

// silently runs the command and returns its exit code.
func silently(ctx context.Context, args ...string) int {
	return run(ctx, args, strings.NewReader(""), io.Discard, io.Discard)
}

// opened returns a client of a store.
func opened(t *testing.T, url string) stores.Store {
	t.Helper()
	s, err := stores.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// acquired returns the history of a store in which a process whose clock is ahead has acquired a
// lease.
func acquired(t *testing.T, url string, ahead time.Duration) string {
	t.Helper()
	s := opened(t, url)
	d, err := s.Describe(t.Context())
	if err == nil {
		_, err = s.Acquire(t.Context(), lease.Request{Store: d.ID, Nonce: lease.NewNonce(),
			Now: time.Now().Add(ahead), TTL: 5 * time.Minute, Owner: "checkout-7"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

// setAWSKey lets clients of S3 sign requests without a search for keys.
func setAWSKey(t *testing.T) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "a",
		"AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

// storeInUse creates a store that the environment configures, in which a process has a lease.
func storeInUse(t *testing.T) {
	t.Helper()
	url, _ := newServer()
	t.Setenv("TRACEFLAKE_STORE", url)
	t.Setenv("TRACEFLAKE_SECRET_FILE", filepath.Join(t.TempDir(), "secret"))
	command(t, "", "lease", "create").want(t, 0, something, "")
	acquired(t, url, 0)
}
