//go:build unix

package s3store_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/s3store"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

func TestMain(m *testing.M) {
	processes.Worker()
	os.Exit(m.Run())
}

// leases begins the URLs of stores.
const leases = "s3://" + s3.Bucket + "/"

// Processes reach the server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	s := child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	proxy := faults.HTTP(t, s.Endpoint())
	processes.Run(t, leases+"processes?endpoint="+proxy.Endpoint(), processes.Outage(s))
	proxy.Check(t)
}

// through returns a function that opens the store over a transport.
func through(tb testing.TB, transport http.RoundTripper) func() (stores.Store, error) {
	tb.Helper()
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: s3.Root.AccessKey, SecretAccessKey: s3.Root.SecretKey},
			nil
	})
	cfg := aws.Config{BaseEndpoint: aws.String(child.ForTest(tb, s3.Start).Endpoint()),
		Credentials: credentials, HTTPClient: &http.Client{Transport: transport}}
	return func() (stores.Store, error) { return s3store.New(cfg, s3.Bucket, "") }
}

// checked is the transport to a server that demands a checksum of every object, as Amazon's does
// for a bucket with Object Lock, which the test's server does not.
type checked struct{ t *testing.T }

func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	sum := r.Header.Get("Content-Md5")
	if r.Method == http.MethodPut &&
		(sum == "" || !strings.Contains(r.Header.Get("Authorization"), "content-md5")) {
		c.t.Errorf("PUT %s has no checksum that is signed: %q", r.URL.Path, sum)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A bucket with Object Lock takes the store's objects; the server compares their checksums.
func TestObjectLock(t *testing.T) {
	server := child.ForTest(t, s3.Start)
	const locked = "locked"
	_, err := server.Client().CreateBucket(t.Context(), &sdk.CreateBucketInput{
		Bucket: aws.String(locked), ObjectLockEnabledForBucket: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := server.Client().GetObjectLockConfiguration(t.Context(),
		&sdk.GetObjectLockConfigurationInput{Bucket: aws.String(locked)})
	if err != nil || lock.ObjectLockConfiguration.ObjectLockEnabled != "Enabled" {
		t.Fatalf("the bucket has no Object Lock: %v", err)
	}
	cfg := aws.Config{BaseEndpoint: aws.String(server.Endpoint()),
		HTTPClient: &http.Client{Transport: checked{t}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: s3.Root.AccessKey,
				SecretAccessKey: s3.Root.SecretKey}, nil
		})}
	err = calls.Everything(t.Context(),
		func() (stores.Store, error) { return s3store.New(cfg, locked, "") }, nil)
	if err != nil {
		t.Error(err)
	}
}

// A store that is restored to an old backup, again and again, grants nothing twice under one
// secret.
func TestRestored(t *testing.T) {
	calls.Restored(t, through(t, &calls.Transport{RoundTripper: http.DefaultTransport}))
}

// The requests of each call; docs/scale.md has those of a fleet.
func TestRequests(t *testing.T) {
	c := &calls.Transport{RoundTripper: http.DefaultTransport}
	calls.Costs(t, through(t, c), &c.N, map[string]int64{
		"start": 2, "acquire": 4, "acquire again": 3, "renew": 2, "get": 1, "release": 2,
	})
}

// slow is a network on which a read takes 30 ms and a write 60.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(map[string]time.Duration{http.MethodGet: 30 * time.Millisecond,
		http.MethodPut: 60 * time.Millisecond}[r.Method])
	return http.DefaultTransport.RoundTrip(r)
}

// A process has its first lease within a second.
func TestFirstLeaseOverASlowNetwork(t *testing.T) {
	open := through(t, slow{})
	created, err := open()
	if err != nil {
		t.Fatal(err)
	}
	processes.CreateWith(t, created, lease.Description{})
	client, err := open()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	keeper, err := lease.Start(t.Context(), client, lease.FixedSecret(secret))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keeper.Close(t.Context()) }()
	if err := keeper.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first lease took %s, want at most 1s", took)
	}
}

// A bucket that is copied to another one, to another server, or to another prefix, is a copy.
func TestCopied(t *testing.T) {
	server, second := child.ForTest(t, s3.Start), child.ForTest(t, s3.Start)
	s3.Root.Setenv(t)
	const bucket = "copied"
	if _, err := server.Client().CreateBucket(t.Context(),
		&sdk.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from       string
		server     *s3.Server
		bucket, to string
	}{
		{"bucket", server, bucket, "bucket"},
		{"prefix", server, s3.Bucket, "another"},
		{"server", second, s3.Bucket, "server"}, // with the same name
	} {
		processes.Copied(t, leases+c.from+"?endpoint="+server.Endpoint(), func() (string, error) {
			time.Sleep(time.Second) // a copy has another time, in seconds
			all, err := server.Client().ListObjectsV2(t.Context(), &sdk.ListObjectsV2Input{
				Bucket: aws.String(s3.Bucket), Prefix: aws.String(c.from + "/"),
			})
			if err != nil {
				return "", err
			}
			for _, o := range all.Contents {
				got, err := server.Client().GetObject(t.Context(), &sdk.GetObjectInput{
					Bucket: aws.String(s3.Bucket), Key: o.Key,
				})
				if err != nil {
					return "", err
				}
				data, err := io.ReadAll(got.Body)
				if err == nil { // the test's server copies no object by itself
					_, err = c.server.Client().PutObject(t.Context(), &sdk.PutObjectInput{
						Bucket: aws.String(c.bucket), Body: bytes.NewReader(data),
						Key: aws.String(c.to + strings.TrimPrefix(*o.Key, c.from)),
					})
				}
				if err != nil {
					return "", err
				}
			}
			return "s3://" + c.bucket + "/" + c.to + "?endpoint=" + c.server.Endpoint(), nil
		})
	}
}

var wantError = calls.WantError("s3store: ", s3.Root.SecretKey, s3.User.SecretKey)

// With the rights of deploy/s3/policy.json, and with each of them missing.
func TestRights(t *testing.T) {
	server := child.ForTest(t, s3.Start)
	text, err := os.ReadFile("../../../deploy/s3/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	// There it is a policy of the user, here one of the bucket.
	policy := strings.NewReplacer("BUCKET", s3.Bucket, "PREFIX", "fleet",
		`"Effect": "Allow"`, `"Effect": "Allow", "Principal": {"AWS": ["`+s3.User.AccessKey+
			`"]}`).Replace(string(text))
	allow := func(right, instead string) {
		t.Helper()
		_, err := server.Client().PutBucketPolicy(t.Context(),
			&sdk.PutBucketPolicyInput{Bucket: aws.String(s3.Bucket),
				Policy: aws.String(strings.Replace(policy, `"`+right+`"`, `"`+instead+`"`, 1))})
		if err != nil {
			t.Fatal(err)
		}
	}
	s3.User.Setenv(t)
	try := func() error {
		return calls.Everything(t.Context(),
			processes.Store(leases+"fleet?endpoint="+server.Endpoint()).Open, nil)
	}
	for right, another := range map[string]string{
		"s3:GetObject": "s3:GetObjectAcl", "s3:PutObject": "s3:PutObjectAcl",
		"s3:ListBucket": "s3:GetBucketAcl",
	} {
		allow(right, another)
		wantError(t, "without "+right, try(), lease.ErrMisconfigured, right+" on s3://"+s3.Bucket,
			"AccessDenied")
	}
	allow("", "")
	if err := try(); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}
