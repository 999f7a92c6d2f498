package s3store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/s3store"
)

// forward sends a request on to a server, without the headers named. It is
// signed anew if the proxy is one that has keys of its own.
func forward(t *testing.T, w http.ResponseWriter, r *http.Request, endpoint string, sign bool, without ...string) {
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Error(err)
	}
	proxy := httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.Out.Host = p.In.Host
		for _, name := range without {
			p.Out.Header.Del(name)
		}
		if sign {
			body, _ := io.ReadAll(p.In.Body) // if the client is gone, its request fails at the server
			p.Out.Body = io.NopCloser(bytes.NewReader(body))
			p.Out.Header.Del("Authorization")
			if err := s3.Sign(p.Out, body); err != nil {
				t.Error(err)
			}
		}
	}}
	proxy.ServeHTTP(w, r)
}

// The store refuses a server that ignores one of the conditions. A proxy that removes them without
// knowing the keys is refused by the server.
func TestConditionsIgnored(t *testing.T) {
	const ignores = "does not honour conditional writes"
	server := started(t)
	for _, c := range []struct {
		without []string
		sign    bool
		texts   []string
	}{
		{[]string{"If-Match", "If-None-Match"}, true, []string{ignores}},
		{[]string{"If-None-Match"}, true, []string{ignores, "on condition that there is no such object"}},
		{[]string{"If-Match"}, true, []string{ignores, "on condition that the object has the version"}},
		{[]string{"If-None-Match"}, false, []string{"SignatureDoesNotMatch"}}, // the headers are signed
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				forward(t, w, r, server.Endpoint(), true)
				return
			}
			forward(t, w, r, server.Endpoint(), c.sign, c.without...)
		}))
		err := create(t, mustOpen(t, config(proxy.URL, s3.Root)))
		wantError(t, fmt.Sprintf("without %s, signed %t", c.without, c.sign), err, lease.ErrMisconfigured, c.texts...)
		proxy.Close()
	}
}

// A gateway that checks the condition when the headers are there and writes when
// the body is, as Versity's 1.6.0 and 1.7.0 do. Writes whose body comes with the
// headers are right: only one that arrives in parts shows the fault.
func TestConditionsCheckedEarly(t *testing.T) {
	server := started(t)
	var mu sync.Mutex
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "" {
			status, _, err := server.Do(r.Context(), http.MethodGet, r.URL.RequestURI(), nil)
			if err != nil || status == http.StatusOK {
				w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
				(&stub{status: http.StatusPreconditionFailed, code: "PreconditionFailed"}).ServeHTTP(w, r)
				return
			}
		}
		whole := make(chan []byte, 1)
		go func() {
			body, _ := io.ReadAll(r.Body)
			whole <- body
		}()
		var body []byte
		select {
		case body = <-whole:
		case <-time.After(10 * time.Millisecond):
			mu.Unlock()
			body = <-whole
			mu.Lock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward(t, w, r, server.Endpoint(), true, "If-Match", "If-None-Match")
	}))
	defer gateway.Close()
	err := create(t, mustOpen(t, config(gateway.URL, s3.Root)))
	wantError(t, "create", err, lease.ErrMisconfigured, "of 8 writes at once, each on condition that there is no such object")
}

// A gateway that changes what it stores. Without the server's keys it is refused by the server; with
// keys of its own, the server's answer shows it.
func TestAlteredBodies(t *testing.T) {
	server := started(t)
	for _, c := range []struct {
		name string
		sign bool
		do   func(w http.ResponseWriter, r *http.Request)
		want error
		text string
	}{
		{"refused", false, nil, lease.ErrMisconfigured, "XAmzContentSHA256Mismatch"},
		{"signed", true, nil, pages.ErrAltered, "did not store what was sent"},
		{"not stored", true, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", r.Header.Get("If-Match"))
		}, pages.ErrAltered, "did not store what was sent"},
	} {
		var alters atomic.Bool
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !alters.Load() || r.Method != http.MethodPut:
				forward(t, w, r, server.Endpoint(), false)
			case c.do != nil:
				c.do(w, r)
			default:
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(bytes.ToUpper(body)))
				forward(t, w, r, server.Endpoint(), c.sign)
			}
		}))
		stored := harness(config(gateway.URL, s3.Root)).New(t)
		stored.Create(t, lease.Description{Nodes: 8})
		s := stored.Client(t)
		alters.Store(true)
		_, err := s.Acquire(t.Context(), calls.Request(time.Now()))
		wantError(t, c.name, err, c.want, c.text)
		gateway.Close()
	}
}

// With the rights that the documentation lists, and with each of them missing.
func TestRights(t *testing.T) {
	server := started(t)
	doc, err := os.ReadFile("../../../lease/s3store/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^//\s*`).ReplaceAllString(string(doc), "")
	policies := regexp.MustCompile(`(?s)\{"Version".*?\n\]\}`).FindAllString(text, -1)
	if len(policies) != 2 {
		t.Fatalf("the documentation has %d policies", len(policies))
	}
	var policy struct {
		Version   string
		Statement []map[string]any
	}
	if err := json.Unmarshal([]byte(strings.NewReplacer("BUCKET", bucket, "PREFIX", "fleet").Replace(policies[0])), &policy); err != nil {
		t.Fatal(err)
	}
	// It is the user's own there, and one of the bucket here.
	allow := func(without string) {
		t.Helper()
		p := policy
		p.Statement = nil
		for _, s := range policy.Statement {
			actions, several := s["Action"].([]any)
			if !several {
				actions = []any{s["Action"]}
			}
			for _, action := range actions {
				if action != any(without) {
					p.Statement = append(p.Statement, map[string]any{
						"Effect": s["Effect"], "Resource": s["Resource"], "Action": action,
						"Principal": map[string]any{"AWS": []string{s3.User.AccessKey}},
					})
				}
			}
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		server.MustDo(t, http.MethodPut, "/"+bucket+"?policy", data)
	}
	ctx, now := t.Context(), time.Now()
	try := func() error {
		const blocks = 4
		s, err := s3store.New(config(server.Endpoint(), s3.User), bucket, s3store.WithPrefix("fleet"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := driver.NewDescription(lease.Description{Nodes: 8 * blocks})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(ctx, d); err != nil {
			return err
		}
		if _, err := s.Raise(ctx, now.Add(-time.Hour)); err != nil {
			return err
		}
		var g lease.Grant
		for range blocks {
			if g, err = s.Acquire(ctx, calls.Request(now)); err != nil {
				return err
			}
		}
		_, err = s.Acquire(ctx, calls.Request(now))
		wantError(t, "no free block", err, lease.ErrNoFreeNode)
		if g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End)); err != nil {
			return err
		}
		if err := s.Release(ctx, g, lease.NewNonce(), now); err != nil {
			return err
		}
		if list, err := s.List(ctx); err != nil || len(list) != blocks {
			return fmt.Errorf("%d blocks, %w", len(list), err)
		}
		now = now.Add(2 * time.Minute) // all are free again
		return nil
	}
	for _, right := range []string{"s3:GetObject", "s3:PutObject", "s3:ListBucket"} {
		allow(right)
		wantError(t, "without "+right, try(), lease.ErrMisconfigured, right+" on s3://"+bucket, "AccessDenied")
	}
	allow("")
	if err := try(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}

// A bucket that is not there, and keys that the server does not know.
func TestWrongBucketOrKeys(t *testing.T) {
	server := s3.ForTest(t)
	try := func(keys s3.Keys) error {
		_, err := mustOpen(t, config(server.Endpoint(), keys)).Describe(t.Context())
		return err
	}
	wantError(t, "no bucket", try(s3.Root), lease.ErrMisconfigured, "no bucket "+bucket)
	wantError(t, "a wrong key", try(s3.Keys{AccessKey: "nobody00000000000000", SecretKey: "x"}), lease.ErrMisconfigured, "InvalidAccessKeyId")
	wantError(t, "a wrong secret", try(s3.Keys{AccessKey: s3.Root.AccessKey, SecretKey: "x"}), lease.ErrMisconfigured, "SignatureDoesNotMatch")
}

// A list has at most 1000 objects: the store reads on.
func TestLongList(t *testing.T) {
	server := started(t)
	cfg := config(server.Endpoint(), s3.Root)
	var lists atomic.Int64
	cfg.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		if q := r.URL.Query(); q.Has("list-type") {
			lists.Add(1)
			q.Set("max-keys", "2")
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
			if err := s3.Sign(r, nil); err != nil {
				t.Error(err)
			}
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	// 16 blocks of 8 nodes on each of 5 pages, all raised: none is free.
	stored := storage(cfg, "long/")
	stored.Create(t, lease.Description{Nodes: 5 * 64 * 8})
	s := stored.Client(t)
	if _, err := s.Raise(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	before := lists.Load()
	_, err := s.Acquire(t.Context(), calls.Request(time.Now()))
	wantError(t, "all raised", err, lease.ErrNoFreeNode)
	if n := lists.Load() - before; n < 4 { // config, 5 pages and an object of the probe
		t.Errorf("%d requests for the list, want 4", n)
	}
}

// through returns a store whose requests pass f, which answers them itself or
// returns nil.
func through(t *testing.T, server *s3.Server, f func(r *http.Request) *stub) driver.Store {
	t.Helper()
	cfg := config(server.Endpoint(), s3.Root)
	cfg.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		s := f(r)
		if s == nil {
			return http.DefaultTransport.RoundTrip(r)
		}
		w := httptest.NewRecorder()
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		s.ServeHTTP(w, r)
		return w.Result(), nil
	})}
	s := mustOpen(t, cfg)
	if err := create(t, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// After a write that was refused because the object has changed, or because
// another write is in progress, the object is read again.
func TestReadAgain(t *testing.T) {
	server := started(t)
	for _, answer := range []*stub{
		{status: http.StatusPreconditionFailed, code: "PreconditionFailed"},
		{status: http.StatusNotFound, code: "NoSuchKey"},
		{status: http.StatusConflict, code: "ConditionalRequestConflict"},
		{status: http.StatusConflict, code: "OperationAborted"},
	} {
		var mu sync.Mutex
		refused, created := map[string]bool{}, false
		s := through(t, server, func(r *http.Request) *stub {
			mu.Lock()
			defer mu.Unlock()
			page := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/page-")
			if !page || !created || refused[r.URL.Path] {
				return nil
			}
			refused[r.URL.Path] = true
			return &stub{status: answer.status, code: answer.code}
		})
		mu.Lock()
		created = true
		mu.Unlock()
		g, err := s.Acquire(t.Context(), calls.Request(time.Now()))
		if err == nil {
			_, err = s.Renew(t.Context(), g, calls.Renewal(lease.NewNonce(), g.End))
		}
		if err != nil {
			t.Errorf("%s: %v", answer.code, err)
		}
		if len(refused) != 1 { // its page, the first time
			t.Errorf("%s: %d pages were refused, want 1", answer.code, len(refused))
		}
	}
}
