package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

func TestURL(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
		"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	for _, c := range []struct {
		url   string
		texts []string
	}{
		{"s3:bucket", []string{"s3://bucket/prefix"}},
		{"s3:///prefix?region=eu-west-1", []string{"s3://bucket/prefix"}},
		{"s3://key:hunter2@bucket?region=eu-west-1", []string{"s3://bucket/prefix"}},
		{"s3://Bucket?region=eu-west-1", []string{`"Bucket"`}},
		{"s3://bucket", []string{"region", "AWS_REGION"}},
		{"s3://bucket?region=evil.example/", []string{`"evil.example/"`, "region"}},
		{"s3://bucket?region=eu-west-1&endpiont=x", []string{`"endpiont"`}},
		{"s3://bucket?endpoint=host:9000", []string{"https://host:port"}},
		{"s3://bucket?endpoint=http://key:hunter2@host:9000", []string{"https://host:port"}},
		{"s3://bucket?endpoint=http://host&style=virtual", []string{`"style"`}},
		{"s3://bucket/a//b?region=eu-west-1", []string{`"a//b/"`}},
		{"s3://bucket/../b?region=eu-west-1", []string{`"../b/"`}},
		{"s3://bucket/a%20b?region=eu-west-1", []string{`"a b/"`}},
	} {
		_, err := stores.Open(c.url)
		wantError(t, c.url, err, lease.ErrInvalidRequest, c.texts...)
	}
	for _, url := range []string{"s3://bucket?region=eu-west-1",
		"s3://my.bucket/a/b/?region=cn-north-1", "s3://bucket?endpoint=http://127.0.0.1:1"} {
		s, err := stores.Open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The URLs that requests have, by the settings. No transport can send the body of a write again, as
// it would after some errors. Writes have a signed checksum, as a bucket with Object Lock demands.
func TestRequestURL(t *testing.T) {
	for _, c := range []struct{ bucket, region, endpoint, want string }{
		{"bucket", "eu-west-1", "", "https://bucket.s3.eu-west-1.amazonaws.com/p/page-0000"},
		{"my.bucket", "eu-west-1", "", "https://s3.eu-west-1.amazonaws.com/my.bucket/p/page-0000"},
		{"bucket", "cn-north-1", "", "https://bucket.s3.cn-north-1.amazonaws.com.cn/p/page-0000"},
		{"bucket", "", "http://host:9000/s3/", "http://host:9000/s3/bucket/p/page-0000"},
	} {
		var got string
		cfg := played(c.endpoint).config()
		if cfg.Region = c.region; c.endpoint == "" {
			cfg.BaseEndpoint = nil
		}
		cfg.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			if got = r.URL.String(); r.GetBody != nil {
				t.Errorf("%s can be sent again", r.Method)
			}
			if r.Method == http.MethodPut && (r.Header.Get("Content-Md5") == "" ||
				!strings.Contains(r.Header.Get("Authorization"), "content-md5")) {
				t.Errorf("PUT %s has no checksum that is signed", got)
			}
			return nil, errors.New("nothing is sent")
		})
		s, err := newServer(cfg, c.bucket, "p")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Write(t.Context(), "page-0000", []byte("data"), ""); got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

// stub responds to every request as a server of S3 would.
type stub struct {
	status int
	code   string
	header http.Header
	after  int64 // so many requests to an empty bucket

	asked atomic.Int64
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.asked.Add(1)
	status, code := s.status, s.code
	if n <= s.after {
		if r.URL.Query().Has("list-type") {
			_, _ = io.WriteString(w, "<ListBucketResult></ListBucketResult>")
			return
		}
		status, code = http.StatusNotFound, "NoSuchKey"
	} else {
		for name, values := range s.header {
			w.Header()[name] = values
		}
	}
	if status == 0 {
		_, _ = io.Copy(io.Discard, r.Body) // a connection that is closed with unread bytes is reset
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	if code != "" {
		_, _ = fmt.Fprintf(w,
			`<?xml version="1.0"?><Error><Code>%s</Code><Message>a message</Message>`+
				`<AWSAccessKeyId>%s</AWSAccessKeyId><StringToSign>%s</StringToSign></Error>`, code,
			root.AccessKeyID, root.SecretAccessKey)
	}
}

func (s *stub) store(t *testing.T) stores.Store {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return played(server.URL).open(t)
}

// Responses of a server, and the resulting errors. No request is repeated, even if its connection
// breaks.
func TestRefusals(t *testing.T) {
	date := func(d time.Duration) http.Header {
		return http.Header{"Date": {time.Now().Add(d).UTC().Format(http.TimeFormat)}}
	}
	// The creation of a store reads the configuration, lists the pages, and reads the probe's
	// object before it writes that.
	const reads, writes = 0, 3
	for _, c := range []struct {
		*stub
		want  error
		texts []string
	}{
		{&stub{status: 403, code: "AccessDenied", after: reads}, lease.ErrMisconfigured,
			[]string{"s3:GetObject on s3://leases/traceflake-test/", "s3:ListBucket on s3://leases",
				"a message"}},
		{&stub{status: 403, code: "AccessDenied", after: writes}, lease.ErrMisconfigured,
			[]string{"s3:PutObject on s3://leases/traceflake-test/"}},
		{&stub{status: 404}, nil, []string{"404"}},
		{&stub{status: 403, code: "RequestTimeTooSkewed", header: date(-90 * time.Minute)},
			lease.ErrClockAhead, []string{"set this machine's clock"}},
		{&stub{status: 403, code: "RequestTimeTooSkewed", header: date(90 * time.Minute)},
			lease.ErrMisconfigured, []string{"set this machine's clock"}},
		{&stub{status: 400, code: "ExpiredToken"}, lease.ErrMisconfigured,
			[]string{"renew the credentials"}},
		{&stub{status: 403, code: "InvalidAccessKeyId"}, lease.ErrMisconfigured,
			[]string{"InvalidAccessKeyId", "credentials"}},
		{&stub{status: 404, code: "NoSuchBucket"}, lease.ErrMisconfigured,
			[]string{"s3://leases/", "create the bucket"}},
		{&stub{status: 301, code: "PermanentRedirect",
			header: http.Header{"X-Amz-Bucket-Region": {"eu-west-3"}}}, lease.ErrMisconfigured,
			[]string{"eu-west-3", "us-east-1"}},
		{&stub{status: 307, code: "TemporaryRedirect",
			header: http.Header{"Location": {"http://127.0.0.1:1/"}}}, nil, []string{"307"}},
		{&stub{status: 501, code: "NotImplemented", after: writes}, lease.ErrMisconfigured,
			[]string{"use a server that supports conditional writes"}},
		{&stub{status: 500, code: "InternalError",
			header: http.Header{"X-Amz-Bucket-Region": {"mars-1"}}, after: writes}, nil,
			[]string{"500", "s3:PutObject"}},
		{&stub{status: 503, code: "ServiceUnavailable", after: writes}, nil,
			[]string{"503", "s3:PutObject"}},
		{&stub{after: writes}, nil, []string{"/probe"}},
		{&stub{status: 409, code: "InvalidBucketState", after: writes}, nil, []string{"409"}},
		{&stub{status: 200}, nil, []string{"no ETag"}},
		{&stub{status: 200, after: writes}, nil, []string{"no ETag"}},
		{&stub{status: 200, header: http.Header{"Etag": {`W/"abc"`}}}, nil, []string{"weak"}},
		{&stub{status: 200, header: http.Header{"Date": nil, "Etag": {`"abc"`}}}, nil,
			[]string{"Date"}},
	} {
		what := fmt.Sprintf("%d %s after %d", c.status, c.code, c.after)
		err, doing := create(t, c.store(t), 0), "s3store: create"
		if c.after == reads {
			c.asked.Store(0)
			_, err = c.store(t).Describe(t.Context())
			doing = "s3store: describe"
		}
		wantError(t, what, err, c.want, append(c.texts, doing)...)
		if c.want == nil && errors.Is(err, lease.ErrMisconfigured) {
			t.Errorf("%s: %v", what, err)
		}
		once := c.after + 1
		if c.after == writes {
			once = c.after + 8 // the probe's, at once
		}
		if asked := c.asked.Load(); asked != once {
			t.Errorf("%s: %d requests, want none repeated: %d", what, asked, once)
		}
	}
}

// A PUT that is redirected, even to itself, and is then answered as if it had succeeded, was not
// stored. Clients of the SDK and of net/http do not follow.
func TestRedirect(t *testing.T) {
	var followed atomic.Int64
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"abc"`)
		if r.Method == http.MethodPut {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return
		}
		followed.Add(1)
	}))
	t.Cleanup(portal.Close)
	for name, client := range map[string]aws.HTTPClient{"the SDK's": nil,
		"net/http's": &http.Client{}, "any": doer(http.DefaultClient.Do)} {
		cfg := played(portal.URL).config()
		cfg.HTTPClient = client
		s, err := newServer(cfg, bucket, "")
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Write(t.Context(), "page-0000", []byte("data"), `"old"`)
		if n := followed.Swap(0); err == nil || n > 0 && name != "any" {
			t.Errorf("%s: %+v, %v, %d redirects were followed", name, o, err, n)
		}
	}
}

// A write that was refused because the object has changed, or because another write of it is in
// progress, is repeated only after a read. A creation is repeated, since a read may not show the
// object yet, and so is what the server had no time for: package pages waits before it does.
func TestConflictsAndThrottling(t *testing.T) {
	for _, c := range []struct {
		*stub
		version, busy string
	}{
		{&stub{status: http.StatusPreconditionFailed, code: "PreconditionFailed"}, "", ""},
		{&stub{status: http.StatusPreconditionFailed, code: "PreconditionFailed"}, "old", ""},
		{&stub{status: http.StatusNotFound, code: "NoSuchKey"}, "old", ""},
		{&stub{status: http.StatusConflict, code: "ConditionalRequestConflict"}, "old", ""},
		{&stub{status: http.StatusConflict, code: "OperationAborted"}, "old", ""},
		{&stub{status: http.StatusConflict, code: "ConditionalRequestConflict"}, "",
			"for another process"},
		{&stub{status: http.StatusServiceUnavailable, code: "SlowDown"}, "old",
			"throttles requests"},
		{&stub{status: http.StatusTooManyRequests}, "old", "throttles requests"},
	} {
		server := httptest.NewServer(c.stub)
		_, err := played(server.URL).server(t, "").Write(t.Context(), "page-0000", []byte("data"),
			c.version)
		_, busy := errors.AsType[*driver.TryAgain](err)
		if busy != (c.busy != "") || errors.Is(err, driver.ErrChanged) == busy ||
			!strings.Contains(err.Error(), c.busy) {
			t.Errorf("%s, version %q: %v", c.code, c.version, err)
		}
		server.Close()
	}
}

// Credentials that were expired are retrieved again.
func TestExpiredCredentials(t *testing.T) {
	server := httptest.NewServer(&stub{status: 400, code: "ExpiredToken"})
	t.Cleanup(server.Close)
	var retrieved atomic.Int64
	cfg := played(server.URL).config()
	cfg.Credentials = aws.NewCredentialsCache(
		aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			retrieved.Add(1)
			return aws.Credentials{AccessKeyID: root.AccessKeyID,
				SecretAccessKey: root.SecretAccessKey, SessionToken: "sessiontoken"}, nil
		}))
	acquire := func() error {
		s, err := New(cfg, bucket, "")
		if err == nil {
			_, err = s.Acquire(t.Context(), calls.Request(time.Now()))
		}
		return err
	}
	for want := range int64(3) {
		wantError(t, "expired", acquire(), lease.ErrMisconfigured, "expired")
		if n := retrieved.Load(); n != want+1 {
			t.Errorf("retrieved %d times, want %d", n, want+1)
		}
	}
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the source is unavailable")
	})
	wantError(t, "no credentials", acquire(), nil, "no credentials", "the source is unavailable")
	cfg.Credentials = nil
	wantError(t, "nil credentials", acquire(), lease.ErrInvalidRequest, "no credentials")
}
