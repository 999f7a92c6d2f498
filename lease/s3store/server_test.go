package s3store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

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

// setenv sets the environment variables from which AWS's SDK takes keys, and none other.
func setenv(tb testing.TB) {
	tb.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": root.AccessKeyID, "AWS_SECRET_ACCESS_KEY": root.SecretAccessKey, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		tb.Setenv(name, value)
	}
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

// sign signs a request.
func (p place) sign(r *http.Request, body []byte) error {
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", payload)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return signer.SignHTTP(r.Context(), p.keys, r, payload, "s3", region, time.Now())
}

// do sends a request without a body, and returns its status.
func (p place) do(ctx context.Context, method, path string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, p.endpoint+path, nil)
	if err == nil {
		err = p.sign(r, nil)
	}
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// What a Server must do, on a real one.
func TestServer(t *testing.T) {
	pagestest.Run(t, func(tb testing.TB) pagestest.Storage {
		p, prefix := real(tb), newPrefix()
		proxy := pagestest.NewProxy(tb, strings.TrimPrefix(p.endpoint, "http://"))
		return pagestest.Storage{
			Open: func() (pages.Server, error) {
				return newServer(p.behind("http://"+proxy.Address()).config(), p.bucket, prefix)
			},
			Delete: func(name string) error {
				_, err := p.do(context.Background(), http.MethodDelete, "/"+p.bucket+"/"+prefix+name)
				return err
			},
			Stall: proxy.Stall,
		}
	})
}
