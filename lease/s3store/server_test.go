package s3store

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// variable has the URL of a bucket in which the tests may write, with keys:
// http://KEY:SECRET@host:port/bucket.
const variable = "TEST_S3"

// bucket, region and root are those of servers that a test plays itself.
const (
	bucket = "leases"
	region = "us-east-1"
)

var wantError = calls.WantError("s3store: ", root.SecretAccessKey, "sessiontoken", "hunter2")

var root = aws.Credentials{AccessKeyID: "rootaccesskey0000000", SecretAccessKey: "root+secret/of+the+tests"}

// place is a bucket of a server, and who may use it.
type place struct {
	endpoint, bucket string
	keys             aws.Credentials
}

// real returns the bucket in the environment.
func real(tb testing.TB) place {
	tb.Helper()
	u, err := url.Parse(os.Getenv(variable))
	if err != nil {
		tb.Fatalf("%s is no URL", variable)
	}
	if u.Host == "" {
		const why = "no S3: run this in the repository, `go run ./integration/servers/with go test ./lease/s3store`, or set " +
			variable + " to http://KEY:SECRET@host:port/bucket"
		if os.Getenv("CI") != "" {
			tb.Fatal(why)
		}
		tb.Skip(why)
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
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return p.keys, nil })
	c := aws.Config{Region: region, Credentials: provider}
	if p.endpoint != "" {
		c.BaseEndpoint = aws.String(p.endpoint)
	}
	return c
}

// newPrefix returns a prefix of a storage's own.
func newPrefix() string { return "traceflake-test/" + rand.Text() + "/" }

// open opens a store, under a prefix of its own.
func (p place) open(tb testing.TB, c aws.Config) driver.Store {
	tb.Helper()
	s, err := New(c, p.bucket, newPrefix())
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
func (p place) server(tb testing.TB, prefix string) *server {
	tb.Helper()
	s, err := newServer(p.config(), p.bucket, prefix)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// What a Server must do, on a real one.
func TestServer(t *testing.T) {
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		p, prefix := real(tb), newPrefix()
		proxy := pagestest.NewProxy(tb, strings.TrimPrefix(p.endpoint, "http://"))
		return pagestest.Storage{
			Open: func() (pages.Server, error) {
				return p.behind("http://"+proxy.Address()).server(tb, prefix), nil
			},
			Delete: func(name string) error {
				_, err := p.server(tb, "").ask(context.Background(), http.MethodDelete, prefix+name, nil, nil)
				return err
			},
			Stall: proxy.Stall,
		}
	})
}
