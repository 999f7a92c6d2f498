package s3store

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

var keys = aws.Credentials{AccessKeyID: "rootaccesskey0000000",
	SecretAccessKey: "root+secret/of+the+tests"}

var wantError = calls.WantError("", keys.SecretAccessKey, "hunter2")

// played returns the objects of a server whose responses are those of h.
func played(t *testing.T, h http.HandlerFunc) *objects {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return place{server.URL, "leases", keys}.server(t, "")
}

// problemOf returns an error of S3, which contains secrets.
func problemOf(code string) string {
	return fmt.Sprintf(`<?xml version="1.0"?><Error><Code>%s</Code><Message>a message</Message>`+
		`<AWSAccessKeyId>%s</AWSAccessKeyId><StringToSign>%s</StringToSign></Error>`,
		code, keys.AccessKeyID, keys.SecretAccessKey)
}

func respond(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, problemOf(code))
}

func TestURL(t *testing.T) {
	for _, url := range []string{
		"s3:///prefix?region=eu-west-1",
		"s3://key:hunter2@bucket?region=eu-west-1",
		"s3://Bucket?region=eu-west-1",
		"s3://bucket?region=evil.example/",
		"s3://bucket?endpoint=http://key:hunter2@host:9000",
		"s3://bucket/a//b?region=eu-west-1",
		"s3://bucket/../b?region=eu-west-1",
		"s3://bucket/b?endpoint=http://host:9000/bucket/",
		"s3://bucket/b?endpoint=https://bucket.s3.eu-west-1.amazonaws.com",
	} {
		_, err := stores.Open(url)
		wantError(t, url, err, lease.ErrInvalidRequest)
	}
	_, err := New(aws.Config{Region: "eu-west-1"}, "bucket", "")
	wantError(t, "no credentials", err, lease.ErrInvalidRequest)
}

// The URLs that requests have, by the settings, or "" if these are refused. No transport can send
// the body of a write again, as it would after some errors. Writes have a signed checksum, as a
// bucket with Object Lock demands.
func TestRequestURL(t *testing.T) {
	for _, c := range []struct{ bucket, region, endpoint, want string }{
		{"bucket", "eu-west-1", "", "https://bucket.s3.eu-west-1.amazonaws.com/p/page-0000"},
		{"my.bucket", "eu-west-1", "", "https://s3.eu-west-1.amazonaws.com/my.bucket/p/page-0000"},
		{"bucket", "cn-north-1", "", "https://bucket.s3.cn-north-1.amazonaws.com.cn/p/page-0000"},
		{"bucket", "", "http://host:9000/s3/", "http://host:9000/s3/bucket/p/page-0000"},
		{"bucket", "", "", ""},
	} {
		got := ""
		cfg := place{c.endpoint, c.bucket, keys}.config()
		cfg.Region = c.region
		cfg.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			if r.GetBody != nil || r.Header.Get("Content-Md5") == "" ||
				!strings.Contains(r.Header.Get("Authorization"), "content-md5") {
				t.Errorf("PUT %s can be sent again, or has no checksum that is signed", got)
			}
			return nil, errors.New("nothing is sent")
		})
		s, err := newServer(cfg, c.bucket, "p")
		if err == nil {
			_, err = s.Write(t.Context(), "page-0000", []byte("data"), "", "")
		}
		if err == nil || got != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

// A server that replays each recorded answer, and AWS's SDK: errors have the meaning and the fix of
// the answer's row.
func TestAnswers(t *testing.T) {
	calls.Answers(t, answers, func(row driver.Answer, message string) error {
		if row.Code == "-" {
			return answers.Explain("-", errors.New(message))
		}
		status, failed := strconv.Atoi(row.Code)
		if failed != nil {
			status = http.StatusBadRequest
		}
		_, err := played(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "mars-1")
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>",
				row.Code, html.EscapeString(message))
		}).Read(t.Context(), "page-0000")
		return err
	}, "{theirs}", "mars-1", "{bucket}", "leases", "{prefix}", defaultPrefix)
}

// Without credentials, the fix is that of what AWS's SDK lacks.
func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"AWS_CONFIG_FILE": dir + "/none",
		"AWS_SHARED_CREDENTIALS_FILE": dir + "/none", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": ""} {
		t.Setenv(name, text)
	}
	for _, c := range []struct{ name, value, fix string }{
		{"AWS_PROFILE", "prod", "correct AWS_PROFILE"},
		{"AWS_ROLE_ARN", "arn:aws:iam::1:role/r", "mount the token"},
		{"AWS_REGION", "eu-west-1", "set AWS_ACCESS_KEY_ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if c.name == "AWS_ROLE_ARN" {
				t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", dir+"/token")
			}
			s, err := stores.Open("s3://bucket?region=eu-west-1")
			if err == nil {
				_, err = s.Describe(t.Context())
			}
			if !strings.HasPrefix(lease.Fix(err), c.fix) {
				t.Errorf("%v has the fix %q", err, lease.Fix(err))
			}
		})
	}
}

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

// A write that was refused because the object has changed, or because another write of it is in
// progress, is repeated only after a read; a creation is repeated, since a read may not show the
// object yet.
func TestResponses(t *testing.T) {
	date := func(d time.Duration) http.Header {
		return http.Header{"Date": {time.Now().Add(d).UTC().Format(http.TimeFormat)}}
	}
	region := func(name string) http.Header { return http.Header{"X-Amz-Bucket-Region": {name}} }
	try := calls.Responses(t,
		func(h http.HandlerFunc) driver.Objects { return played(t, h) }, wantError)
	try("read", 403, nil, problemOf("AccessDenied"), "misconfigured",
		"grant s3:GetObject and s3:PutObject")
	try("read", 404, nil, "", "unknown", "another kind of server")
	try("read", 404, nil, problemOf("NoSuchBucket"), "misconfigured", "create the bucket")
	try("read", 403, date(-90*time.Minute), problemOf(wrongClock), "clock", "machine's clock")
	try("read", 403, date(90*time.Minute), problemOf(wrongClock), "misconfigured",
		"machine's clock")
	try("read", 301, region("eu-west-3"), problemOf("PermanentRedirect"), "misconfigured",
		"eu-west-3")
	try("create", 501, nil, problemOf("NotImplemented"), "misconfigured", "conditional writes")
	try("create", 500, region("mars-1"), problemOf("ExpiredToken"), "unknown", "s3:PutObject")
	try("read create", 0, nil, "", "unknown", "/page-0001")
	try("create", 409, nil, problemOf("InvalidBucketState"), "unknown", "409")
	try("read replace", 200, nil, "", "unknown", "ETag")
	try("read", 200, http.Header{"Etag": {`W/"abc"`}}, "", "unknown", "ETag")
	try("replace", 409, nil, problemOf("ConditionalRequestConflict"), "changed", "")
	try("create", 409, nil, problemOf("ConditionalRequestConflict"), "again", "")
	try("read", 503, nil, problemOf("SlowDown"), "again", "")
	try("replace", 429, nil, "", "again", "")
}

// A PUT that is redirected, even to itself, and is then answered as if it had succeeded, was not
// stored. Clients of the SDK and of net/http do not follow.
func TestRedirect(t *testing.T) {
	portal := played(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"abc"`)
		if r.Method == http.MethodPut {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}
	})
	_, err := portal.Write(t.Context(), "page-0000", []byte("data"), "old", "")
	wantError(t, "the SDK's client", err, nil, "302")
	portal.client = httpClient(doer(http.DefaultClient.Do))
	_, err = portal.Write(t.Context(), "page-0000", []byte("data"), "old", "")
	wantError(t, "another client", err, nil, "followed a redirect")
}

// Credentials that were expired are retrieved again, also those in a cache of the caller.
func TestExpiredCredentials(t *testing.T) {
	retrieved, p := 0, place{"http://host", "leases", keys}
	cfg := p.config()
	cfg.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) { retrieved++; return keys, nil }))
	cfg.HTTPClient = doer(func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		respond(w, http.StatusBadRequest, "ExpiredToken")
		return w.Result(), nil
	})
	s, err := newServer(cfg, p.bucket, "")
	if err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		_, err = s.Read(t.Context(), "page-0000")
		wantError(t, "expired", err, lease.ErrMisconfigured, "expired")
		if retrieved != want+1 {
			t.Errorf("retrieved %d times, want %d", retrieved, want+1)
		}
	}
}

// A mirror that copies each object after some milliseconds gives the place another time, since it
// was written at the end of a second. Without that, or on a server that accepts a write of an
// object each second, it would do so only by chance. One that missed later writes has other data.
func TestPlace(t *testing.T) {
	const lag = 50 * time.Millisecond
	for what, noticed := range map[string]bool{"aligned": true, "unaligned": false, "busy": false} {
		synctest.Test(t, func(t *testing.T) {
			var modified time.Time
			var data [][]byte // of each write
			cfg := place{"http://host", "leases", keys}.config()
			cfg.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
				time.Sleep(3 * time.Millisecond)
				w := httptest.NewRecorder()
				now := time.Now()
				soon := now.Sub(modified) < time.Second
				switch {
				case r.Method == http.MethodPut && what == "busy" && soon:
					respond(w, 503, "SlowDown")
				case r.Method == http.MethodPut:
					body, _ := io.ReadAll(r.Body)
					data, modified = append(data, body), now
					w.Header().Set("ETag", strconv.Quote(md5Sum(body)))
				case data == nil, strings.HasSuffix(r.URL.Path, "config"):
					respond(w, 404, "NoSuchKey")
				default:
					w.Header().Set("ETag", `"abc"`)
					w.Header().Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
					_, _ = w.Write(data[len(data)-1])
				}
				return w.Result(), nil
			})
			s, err := newServer(cfg, "leases", "")
			if err != nil {
				t.Fatal(err)
			}
			s.quick = what == "unaligned"
			o, err := s.Read(t.Context(), "config")
			if err != nil || o.Place != "" {
				t.Errorf("before there is a place it is %q, %v", o.Place, err)
			}
			time.Sleep(100 * time.Millisecond)
			if err := s.draw(t.Context()); err != nil {
				t.Fatal(err)
			}
			o, err = s.Read(t.Context(), "config")
			modified = modified.Add(lag)
			copied, failed := s.Read(t.Context(), "config")
			if err := errors.Join(err, failed); err != nil || o.Place == "" ||
				(o.Place != copied.Place) != noticed {
				t.Errorf("%s: the place is %q, and the mirror's %q, %v", what, o.Place,
					copied.Place, err)
			}
			modified = modified.Add(-lag)
			for _, earlier := range data[:len(data)-1] {
				data = append(data, earlier)
				if missed, err := s.Read(t.Context(), "config"); err != nil ||
					missed.Place == o.Place {
					t.Errorf("%s: an earlier place is %q, %v", what, missed.Place, err)
				}
			}
		})
	}
}

// Data that does not match its ETag is read again, unless the ETag cannot be compared with it.
func TestTornReads(t *testing.T) {
	sum, old := md5Sum([]byte("data")), md5Sum([]byte("older data"))
	for _, c := range []struct {
		encryption string
		etags      []string // of the responses
	}{
		{"", []string{sum + "-2"}}, // of several parts
		{"aws:kms", []string{old}},
		{"", []string{old, old}}, // another checksum
		{"", []string{old, sum}},
	} {
		asked := 0
		o, err := played(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", c.etags[asked])
			asked++
			w.Header().Set("X-Amz-Server-Side-Encryption", c.encryption)
			_, _ = w.Write([]byte("data"))
		}).Read(t.Context(), "page-0000")
		if want := c.etags[len(c.etags)-1]; err != nil || asked != len(c.etags) ||
			o.Version != want || string(o.Data) != "data" {
			t.Errorf("%v: read %q of %q, %v, in %d requests", c, o.Data, o.Version, err, asked)
		}
	}
	asked := 0
	_, err := played(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("ETag", md5Sum([]byte{byte(asked)}))
	}).Read(t.Context(), "page-0000")
	wantError(t, "always torn", err, nil, fmt.Sprintf("each of %d responses", asked))
}
