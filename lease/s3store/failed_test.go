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

	asked atomic.Int64
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	for name, values := range s.header {
		w.Header()[name] = values
	}
	if s.status == 0 {
		_, _ = io.Copy(io.Discard, r.Body) // a connection that is closed with unread bytes is reset
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(s.status)
	if s.code != "" {
		_, _ = fmt.Fprintf(w,
			`<?xml version="1.0"?><Error><Code>%s</Code><Message>a message</Message>`+
				`<AWSAccessKeyId>%s</AWSAccessKeyId><StringToSign>%s</StringToSign></Error>`,
			s.code, root.AccessKeyID, root.SecretAccessKey)
	}
}

// Responses of a server, and the resulting errors. No request is repeated, even if its connection
// breaks. A write that was refused because the object has changed, or because another write of it
// is in progress, is repeated only after a read; a creation is repeated, since a read may not show
// the object yet.
func TestResponses(t *testing.T) {
	date := func(d time.Duration) http.Header {
		return http.Header{"Date": {time.Now().Add(d).UTC().Format(http.TimeFormat)}}
	}
	region := func(name string) http.Header { return http.Header{"X-Amz-Bucket-Region": {name}} }
	const read, create, replace, both = 1, 2, 4, 6
	again := errors.New("TryAgain")
	misconfigured, changed := lease.ErrMisconfigured, driver.ErrChanged
	for _, c := range []struct {
		calls  int
		status int
		code   string
		header http.Header
		want   error
		text   string
	}{
		{read, 403, "AccessDenied", nil, misconfigured, "grant s3:GetObject and s3:PutObject on"},
		{both, 403, "AccessDenied", nil, misconfigured, "s3:PutObject on s3://leases/"},
		{read, 404, "", nil, nil, "404"},
		{read, 403, wrongClock, date(-90 * time.Minute), lease.ErrClockAhead, "machine's clock"},
		{read, 403, wrongClock, date(90 * time.Minute), misconfigured, "set this machine's clock"},
		{read, 400, "ExpiredToken", nil, misconfigured, "renew the credentials"},
		{read, 403, "InvalidAccessKeyId", nil, misconfigured, "credentials"},
		{read, 404, "NoSuchBucket", nil, misconfigured, "create the bucket"},
		{read, 301, "PermanentRedirect", region("eu-west-3"), misconfigured, "eu-west-3"},
		{read, 307, "TemporaryRedirect", http.Header{"Location": {"http://127.0.0.1:1/"}}, nil,
			"307"},
		{both, 501, "NotImplemented", nil, misconfigured, "supports conditional writes"},
		{both, 500, "InternalError", region("mars-1"), nil, "s3:PutObject"},
		{both, 503, "ServiceUnavailable", nil, nil, "503"},
		{read + both, 0, "", nil, nil, "/page-0000"},
		{both, 409, "InvalidBucketState", nil, nil, "409"},
		{read + both, 200, "", nil, nil, "no strong ETag"},
		{read + both, 200, "", http.Header{"Etag": {`W/"abc"`}}, nil, "no strong ETag"},
		{both, 412, "PreconditionFailed", nil, changed, ""},
		{replace, 404, "NoSuchKey", nil, changed, ""},
		{replace, 409, "ConditionalRequestConflict", nil, changed, ""},
		{replace, 409, "OperationAborted", nil, changed, ""},
		{create, 409, "ConditionalRequestConflict", nil, again, "being created"},
		{read + both, 503, "SlowDown", nil, again, "throttles"},
		{read + both, 429, "", nil, again, "throttles"},
	} {
		answers := &stub{status: c.status, code: c.code, header: c.header}
		server := httptest.NewServer(answers)
		o := played(server.URL).server(t, "")
		for call, do := range map[int]func() (driver.Object, error){
			read: func() (driver.Object, error) { return o.Read(t.Context(), "page-0000") },
			create: func() (driver.Object, error) {
				return o.Write(t.Context(), "page-0000", []byte("data"), "")
			},
			replace: func() (driver.Object, error) {
				return o.Write(t.Context(), "page-0000", []byte("data"), "old")
			},
		} {
			if c.calls&call == 0 {
				continue
			}
			what := fmt.Sprintf("%d %s, call %d", c.status, c.code, call)
			_, err := do()
			wantError(t, what, err, nil, c.text)
			_, busy := errors.AsType[*driver.TryAgain](err)
			if c.want != nil && !errors.Is(c.want, again) && !errors.Is(err, c.want) ||
				c.want == nil && errors.Is(err, misconfigured) ||
				busy != errors.Is(c.want, again) ||
				errors.Is(err, changed) != errors.Is(c.want, changed) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			if n := answers.asked.Swap(0); n != 1 {
				t.Errorf("%s: %d requests, want one", what, n)
			}
		}
		server.Close()
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
	read := func() error {
		s, err := newServer(cfg, bucket, "")
		if err == nil {
			_, err = s.Read(t.Context(), "page-0000")
		}
		return err
	}
	for want := range int64(3) {
		wantError(t, "expired", read(), lease.ErrMisconfigured, "expired")
		if n := retrieved.Load(); n != want+1 {
			t.Errorf("retrieved %d times, want %d", n, want+1)
		}
	}
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("the source is unavailable")
	})
	wantError(t, "no credentials", read(), nil, "no credentials", "the source is unavailable")
	cfg.Credentials = nil
	_, err := New(cfg, bucket, "")
	wantError(t, "nil credentials", err, lease.ErrInvalidRequest, "no credentials")
}
