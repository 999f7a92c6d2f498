package s3store

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/stores"
)

// place is a bucket of a server, and who may use it.
type place struct {
	endpoint, bucket string
	keys             aws.Credentials
}

// real returns the bucket of TRACEFLAKETEST_S3, in which the tests may write.
func real(tb testing.TB) place {
	tb.Helper()
	u, err := url.Parse(calls.Server(tb, "TRACEFLAKETEST_S3", "http://KEY:SECRET@host:port/bucket"))
	if err != nil {
		tb.Fatal(err)
	}
	p := place{endpoint: u.Scheme + "://" + u.Host, bucket: strings.Trim(u.Path, "/")}
	p.keys.AccessKeyID = u.User.Username()
	p.keys.SecretAccessKey, _ = u.User.Password()
	return p
}

func (p place) config() aws.Config {
	provider := aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) { return p.keys, nil })
	return aws.Config{Region: "us-east-1", Credentials: provider, BaseEndpoint: &p.endpoint}
}

// newPrefix returns a prefix of a storage's own.
func newPrefix() string { return "traceflake-test/" + rand.Text() + "/" }

// server returns a client of the bucket.
func (p place) server(tb testing.TB, prefix string) *objects {
	tb.Helper()
	s, err := newServer(p.config(), p.bucket, prefix)
	if err != nil {
		tb.Fatal(err)
	}
	s.quick = true
	return s
}

// Keys that were replaced in the shared file are used after the server has refused the old ones.
func TestReplacedKeys(t *testing.T) {
	p, file := real(t), filepath.Join(t.TempDir(), "credentials")
	for name, value := range map[string]string{
		"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": os.DevNull, "AWS_PROFILE": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	write := func(secret string) {
		text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
			p.keys.AccessKeyID, secret)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hunter2")
	s, err := stores.Open("s3://" + p.bucket + "/" + newPrefix() + "?endpoint=" + p.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err = s.Time(t.Context())
	wantError(t, "other keys", err, lease.ErrMisconfigured, "SignatureDoesNotMatch")
	write(p.keys.SecretAccessKey)
	if _, err := s.Time(t.Context()); err != nil {
		t.Error(err)
	}
}

// The contract of Objects, on a real server.
func TestServer(t *testing.T) {
	leasetest.Run(t, func(tb testing.TB) leasetest.Storage {
		p, prefix := real(tb), newPrefix()
		return leasetest.Storage{
			Outage: calls.Outage(),
			Server: strings.TrimPrefix(p.endpoint, "http://"),
			Open: func(address string) (driver.Objects, error) {
				return place{"http://" + address, p.bucket, p.keys}.server(tb, prefix), nil
			},
			Delete: func(name string) error {
				_, err := p.server(tb, "").ask(context.Background(), http.MethodDelete, prefix+name,
					nil, nil)
				return err
			},
		}
	})
}
