//go:build unix

package leasetest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// remote is a server of pages over HTTP, in the test's process, and the client of the workers. A flaw
// is a wrong server or a wrong client.
type remote struct {
	flaw   string
	mu     sync.Mutex
	data   map[string]string
	synced map[string]string // what is on the disk, which is written a second before each kill

	readOnly atomic.Bool
}

type message struct {
	Op, Name, Version string
	Data              []byte
	Changed           bool
	All               map[string][]byte `json:",omitempty"`
}

func (s *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.flaw == "no condition" {
		time.Sleep(rand.N(2 * time.Millisecond)) // as on a network
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Op {
	case "write":
		if s.readOnly.Load() {
			http.Error(w, "read-only", http.StatusServiceUnavailable)
			return
		}
		if m.Changed = s.data[m.Name] != m.Version && s.flaw != "no condition"; !m.Changed {
			s.data[m.Name] = string(m.Data)
		}
	case "list":
		m.All = map[string][]byte{}
		for name, data := range s.data {
			m.All[name] = []byte(data)
		}
	}
	m.Data = []byte(s.data[m.Name])
	_ = json.NewEncoder(w).Encode(m)
}

func (s *remote) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = maps.Clone(s.data)
}

// restart does what a server does that is killed and started again.
func (s *remote) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.flaw {
	case "memory only":
		s.data = map[string]string{}
	case "not synced":
		s.data = maps.Clone(s.synced)
	}
}

// client is a [pages.Server] at an address.
type client struct{ address, flaw string }

func (c client) do(ctx context.Context, m message) (message, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address, bytes.NewReader(body))
	if err != nil {
		return m, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return m, err
	}
	defer func() { _ = answer.Body.Close() }()
	return m, json.NewDecoder(answer.Body).Decode(&m)
}

func (c client) Read(ctx context.Context, name string) (pages.Object, error) {
	m, err := c.do(ctx, message{Op: "read", Name: name})
	return pages.Object{Data: m.Data, Version: string(m.Data)}, err
}

func (c client) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	m, err := c.do(ctx, message{Op: "write", Name: name, Data: data, Version: version})
	if err != nil && c.flaw == "swallowed errors" {
		return pages.Object{Version: string(data)}, nil
	}
	if err == nil && m.Changed {
		err = pages.ErrChanged
	}
	return pages.Object{Data: m.Data, Version: string(m.Data)}, err
}

func (c client) List(ctx context.Context) (map[string]pages.Object, error) {
	m, err := c.do(ctx, message{Op: "list"})
	all := map[string]pages.Object{}
	for name, data := range m.All {
		all[name] = pages.Object{Data: data, Version: string(data)}
	}
	return all, err
}

func init() {
	driver.Register("leasetest", func(text string) (driver.Store, error) {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		return pages.New(client{u.Host, u.Query().Get("flaw")}, pages.Layout{Name: "leasetest", BlocksPerPage: 16})
	})
}

// run runs processes on a remote store with a flaw.
func (s *remote) run(tb testing.TB) {
	s.data = map[string]string{}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	cut := NewCutter(tb, server.Listener.Addr().String())
	began := time.Now()
	Processes{
		URL: "leasetest://" + cut.Address() + "?flaw=" + url.QueryEscape(s.flaw),
		Outage: func(during func()) error {
			if s.flaw == "swallowed errors" { // a client that cannot read has nothing to write
				s.readOnly.Store(true)
				during()
				s.readOnly.Store(false)
				return nil
			}
			s.sync()
			cut.Lose()
			time.Sleep(time.Second)
			cut.Cut()
			during()
			s.restart()
			cut.Mend()
			return nil
		},
	}.Run(tb)
	tb.Logf("%q: %s", s.flaw, time.Since(began).Round(time.Second))
}

// The server without a flaw, over a network that stalls, is one of pages.
func TestRemote(t *testing.T) {
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		s := &remote{data: map[string]string{}}
		server := httptest.NewServer(s)
		tb.Cleanup(server.Close)
		cut := NewCutter(tb, server.Listener.Addr().String())
		return pagestest.Storage{
			Open: func() (pages.Server, error) { return client{address: cut.Address()}, nil },
			Delete: func(name string) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.data, name)
				return nil
			},
			Stall: func() (resume func()) {
				cut.Stall()
				return cut.Mend
			},
		}
	})
}

func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	(&remote{}).run(t)
}

func TestProcessesCatchWrongStores(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for flaw, text := range map[string]string{
		"no condition":     "writes are not conditional",
		"memory only":      "does the server keep it in memory only",
		"not synced":       "in an outage it forgot a write",
		"swallowed errors": "although it had failed",
	} {
		t.Run(flaw, func(t *testing.T) {
			began := time.Now()
			judge := func() *verdicts {
				return judged(t, check{run: func(tb testing.TB, _ Harness) { (&remote{flaw: flaw}).run(tb) }}, Harness{})
			}
			v := judge()
			for !strings.Contains(v.said, text) && time.Since(began) < 40*time.Second { // on a busy machine a run may meet too few faults
				v = judge()
			}
			if took := time.Since(began); !v.Failed() || !strings.Contains(v.said, text) || took > time.Minute {
				t.Errorf("after %s: %q, want it to say %q", took, v.said, text)
			}
		})
	}
}
