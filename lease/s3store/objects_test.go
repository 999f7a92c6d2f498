package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// bucket, region and root are those of servers that a test plays itself.
const (
	bucket = "leases"
	region = "us-east-1"
)

var wantError = calls.WantError("s3store: ", root.SecretAccessKey, "sessiontoken", "hunter2")

var root = aws.Credentials{AccessKeyID: "rootaccesskey0000000",
	SecretAccessKey: "root+secret/of+the+tests"}

// place is a bucket of a server, and who may use it.
type place struct {
	endpoint, bucket string
	keys             aws.Credentials
}

// real returns the bucket of TEST_S3, in which the tests may write.
func real(tb testing.TB) place {
	tb.Helper()
	u, err := url.Parse(calls.Server(tb, "TEST_S3", "http://KEY:SECRET@host:port/bucket"))
	if err != nil {
		tb.Fatal(err)
	}
	p := place{endpoint: u.Scheme + "://" + u.Host, bucket: strings.Trim(u.Path, "/")}
	p.keys.AccessKeyID = u.User.Username()
	p.keys.SecretAccessKey, _ = u.User.Password()
	return p
}

// played returns a bucket of a server that a test plays.
func played(endpoint string) place { return place{endpoint, bucket, root} }

// behind returns the bucket as a proxy shows it.
func (p place) behind(proxy string) place {
	p.endpoint = proxy
	return p
}

func (p place) config() aws.Config {
	provider := aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) { return p.keys, nil })
	return aws.Config{Region: region, Credentials: provider, BaseEndpoint: aws.String(p.endpoint)}
}

// newPrefix returns a prefix of a storage's own.
func newPrefix() string { return "traceflake-test/" + rand.Text() + "/" }

// open opens a store, under a prefix of its own.
func (p place) open(tb testing.TB) driver.Store {
	tb.Helper()
	s, err := New(p.config(), p.bucket, newPrefix())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// create creates a store of some nodes, or of all, as an operator does.
func create(tb testing.TB, s driver.Store, nodes uint32) error {
	tb.Helper()
	d, err := driver.NewDescription(lease.Description{Nodes: nodes, LongestTTL: lease.MaxTTL})
	if err != nil {
		tb.Fatal(err)
	}
	return s.Create(tb.Context(), d)
}

// server returns a client of the bucket.
func (p place) server(tb testing.TB, prefix string) *objects {
	tb.Helper()
	s, err := newServer(p.config(), p.bucket, prefix)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// What a Server must do, on a real one.
func TestServer(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		p, prefix := real(tb), newPrefix()
		proxy := leasetest.NewProxy(tb, strings.TrimPrefix(p.endpoint, "http://"))
		return leasetest.Storage{
			Open: func() (driver.Objects, error) {
				return p.behind("http://"+proxy.Address()).server(tb, prefix), nil
			},
			Delete: func(name string) error {
				_, err := p.server(tb, "").ask(context.Background(), http.MethodDelete, prefix+name,
					nil, nil)
				return err
			},
			Stall: proxy.Stall,
		}
	})
}

// forward sends a request on to the server, without the headers named. It is
// signed anew if the proxy is one that has keys of its own.
func (p place) forward(t *testing.T, w http.ResponseWriter, r *http.Request, sign bool,
	without ...string) {
	target, err := url.Parse(p.endpoint)
	if err != nil {
		t.Error(err)
	}
	for _, name := range without {
		r.Header.Del(name)
	}
	if !sign {
		proxy := httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0),
			Rewrite: func(q *httputil.ProxyRequest) {
				q.SetURL(target)
				q.Out.Host = q.In.Host
			}}
		proxy.ServeHTTP(w, r)
		return
	}
	r.Header.Del("Authorization")
	body, _ := io.ReadAll(r.Body) // if the client is gone, its request fails at the server
	a, err := p.server(t, "").ask(r.Context(), r.Method, p.path(r), r.Header, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (p place) path(r *http.Request) string {
	return strings.TrimPrefix(r.URL.RequestURI(), "/"+p.bucket+"/")
}

// The store refuses a server that ignores one of the conditions. A proxy that removes them without
// knowing the keys is refused by the server.
func TestConditionsIgnored(t *testing.T) {
	const ignores = "does not honour conditional writes"
	server := real(t)
	for _, c := range []struct {
		without []string
		sign    bool
		texts   []string
	}{
		{[]string{"If-Match", "If-None-Match"}, true, []string{ignores}},
		{[]string{"If-None-Match"}, true,
			[]string{ignores, "on condition that there is no such object"}},
		{[]string{"If-Match"}, true,
			[]string{ignores, "on condition that the object has the version"}},
		// the headers are signed
		{[]string{"If-None-Match"}, false, []string{"SignatureDoesNotMatch"}},
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				server.forward(t, w, r, true)
				return
			}
			server.forward(t, w, r, c.sign, c.without...)
		}))
		err := create(t, server.behind(proxy.URL).open(t), 0)
		wantError(t, fmt.Sprintf("without %s, signed %t", c.without, c.sign), err,
			lease.ErrMisconfigured, c.texts...)
		proxy.Close()
	}
}

// A gateway that checks the condition when the headers are there and writes when
// the body is, as Versity's 1.6.0 and 1.7.0 do. Writes whose body comes with the
// headers are right: only one that arrives in parts shows the fault.
func TestConditionsCheckedEarly(t *testing.T) {
	server := real(t)
	var mu sync.Mutex
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut && r.Header.Get("If-None-Match") != "" {
			a, err := server.server(t, "").ask(r.Context(), http.MethodGet, server.path(r), nil,
				nil)
			if err != nil || a.status == http.StatusOK {
				w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
				(&stub{status: http.StatusPreconditionFailed,
					code: "PreconditionFailed"}).ServeHTTP(w, r)
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
		server.forward(t, w, r, true, "If-Match", "If-None-Match")
	}))
	defer gateway.Close()
	err := create(t, server.behind(gateway.URL).open(t), 0)
	wantError(t, "create", err, lease.ErrMisconfigured,
		"of 8 writes at once, each on condition that there is no such object")
}

// A gateway that changes what it stores. Without the server's keys it is refused by the server;
// with keys of its own, the server's answer shows it.
func TestAlteredBodies(t *testing.T) {
	server := real(t)
	for _, c := range []struct {
		name    string
		sign    bool
		without []string // headers
		do      func(w http.ResponseWriter, r *http.Request)
		want    error
		text    string
	}{
		{"refused", false, nil, nil, lease.ErrMisconfigured, "XAmzContentSHA256Mismatch"},
		{"signed", true, nil, nil, nil, "BadDigest"},
		{"signed, without the checksum", true, []string{"Content-Md5"}, nil, driver.ErrAltered,
			"did not store what was sent"},
		{"not stored", true, nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", r.Header.Get("If-Match"))
		}, driver.ErrAltered, "did not store what was sent"},
	} {
		var alters atomic.Bool
		gateway := httptest.NewServer(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !alters.Load() || r.Method != http.MethodPut:
					server.forward(t, w, r, false)
				case c.do != nil:
					c.do(w, r)
				default:
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(bytes.ToUpper(body)))
					server.forward(t, w, r, c.sign, c.without...)
				}
			}))
		s := server.behind(gateway.URL).open(t)
		if err := create(t, s, 8); err != nil {
			t.Fatal(err)
		}
		alters.Store(true)
		_, err := s.Acquire(t.Context(), calls.Request(time.Now()))
		wantError(t, c.name, err, c.want, c.text)
		gateway.Close()
	}
}
