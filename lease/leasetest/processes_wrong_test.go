//go:build unix

package leasetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// remote is a server of pages over HTTP, in the test's process.
type remote struct {
	calls.Memory
	mu       sync.Mutex
	old      map[string]driver.Object // the state of each page before its last write
	readOnly atomic.Bool
}

// message is a request of a client and its answer.
type message struct {
	Op, Name, Version string
	Data              []byte
	Object            driver.Object
	All               map[string]driver.Object
	Changed           bool
}

func (s *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	err := json.NewDecoder(r.Body).Decode(&m)
	ctx := context.Background() // a write arrives even if its client has gone
	switch m.Op {
	case "read":
		m.Object, err = s.Read(ctx, m.Name)
	case "write":
		if s.readOnly.Load() {
			http.Error(w, "read-only", http.StatusServiceUnavailable)
			return
		}
		before, _ := s.Read(ctx, m.Name)
		m.Object, err = s.Write(ctx, m.Name, m.Data, m.Version)
		if m.Changed = err != nil; !m.Changed && before.Version != "" && m.Name != "config" {
			s.mu.Lock()
			s.old[m.Name] = before
			s.mu.Unlock()
		}
	case "list":
		m.All, err = s.List(ctx)
	}
	if err != nil && !m.Changed {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(m)
}

// forget undoes the last write of each page, as a server may that was killed before it had written
// to a disk.
func (s *remote) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.old {
		now, _ := s.Read(context.Background(), name)
		_, _ = s.Write(context.Background(), name, o.Data, now.Version)
	}
}

// httpClient is [driver.Objects] at an address.
type httpClient struct {
	address  string
	swallows bool // the errors of writes
}

func (c httpClient) do(ctx context.Context, m message) (answer message, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address,
		bytes.NewReader(body))
	if err != nil {
		return m, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return m, err
	}
	defer func() { _ = res.Body.Close() }()
	return answer, json.NewDecoder(res.Body).Decode(&answer)
}

func (c httpClient) Read(ctx context.Context, name string) (driver.Object, error) {
	m, err := c.do(ctx, message{Op: "read", Name: name})
	return m.Object, err
}

func (c httpClient) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	m, err := c.do(ctx, message{Op: "write", Name: name, Data: data, Version: version})
	if err != nil && c.swallows {
		return driver.Object{Version: string(data)}, nil
	}
	if err == nil && m.Changed {
		err = driver.ErrChanged
	}
	return m.Object, err
}

func (c httpClient) List(ctx context.Context) (map[string]driver.Object, error) {
	m, err := c.do(ctx, message{Op: "list"})
	return m.All, err
}

func init() {
	driver.Register("leasetest", func(text string) (driver.Store, error) {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("leasetest: %w: it cannot be parsed", lease.ErrInvalidRequest)
		}
		return driver.New(httpClient{u.Host, u.Query().Has("swallows")},
			driver.Layout{Name: "leasetest", BlocksPerPage: 16})
	})
}

// runOn runs processes on a remote store with a flaw.
func runOn(tb testing.TB, flaw string) {
	s := &remote{old: map[string]driver.Object{}}
	if flaw == "no condition" {
		s.Accepts = func(name string, _ bool) bool {
			if strings.HasPrefix(name, "page-") {
				time.Sleep(200 * time.Millisecond) // so that other writes meet it
			}
			return true
		}
	}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	proxy := network.NewProxy(tb, server.Listener.Addr().String())
	query := ""
	if flaw == "swallowed errors" {
		query = "?swallows"
	}
	Processes{
		URL: "leasetest://" + proxy.Address() + query,
		Outage: func(during func()) error {
			if flaw == "swallowed errors" { // a client that cannot read has nothing to write
				s.readOnly.Store(true)
				during()
				s.readOnly.Store(false)
				return nil
			}
			proxy.Lose()
			time.Sleep(time.Second)
			proxy.Cut()
			during()
			if flaw == "not on a disk" {
				s.forget()
			}
			proxy.Mend()
			return nil
		},
	}.Run(tb)
}

func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	runOn(t, "none")
}

// Each mistake is certain to occur, however busy the machine is: all pages forget a write, every
// write of an outage fails, or writes take so long that they meet.
func TestProcessesCatchWrongStores(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, flaw := range []string{"no condition", "not on a disk", "swallowed errors"} {
		t.Run(flaw, func(t *testing.T) {
			v := judged(t, func(tb testing.TB) { runOn(tb, flaw) })
			if !regexp.MustCompile("generated before|grants overlap|was lost").MatchString(v.said) {
				t.Errorf("not seen; the judge reports %q", v.said)
			}
		})
	}
}
