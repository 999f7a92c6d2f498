package s3store

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

const (
	// DefaultPrefix begins every key unless [WithPrefix] gives another.
	DefaultPrefix = "traceflake/leases/"

	// blocksPerPage makes 256 pages of 16384 blocks.
	blocksPerPage = 64
)

// Option configures a store.
type Option func(*options)

type options struct {
	prefix    string
	pathStyle *bool
}

// WithPrefix sets the prefix of every key. It may have letters, digits and the
// characters -_./ in it. Fleets with different secrets need different prefixes,
// none of which is a prefix of another.
func WithPrefix(prefix string) Option {
	return func(o *options) { o.prefix = prefix }
}

// WithPathStyle sets whether the bucket's name is in the path of URLs, or in
// the host's name. The default is the path for a server with an endpoint of its
// own and for a bucket with a dot in its name, and the host otherwise.
func WithPathStyle(path bool) Option {
	return func(o *options) { o.pathStyle = &path }
}

// New returns a store in a bucket. It uses the region, the credentials, the
// BaseEndpoint and the HTTPClient of config, which package
// github.com/aws/aws-sdk-go-v2/config loads. The client must not repeat a
// request, as those of config and of net/http do not. New makes no request.
// Errors of invalid arguments wrap [lease.ErrInvalidRequest]. Close closes idle
// connections of the store's own client.
func New(config aws.Config, bucket string, opts ...Option) (driver.Store, error) {
	o := options{prefix: DefaultPrefix}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	s, err := newServer(config, bucket, o)
	if err != nil {
		return nil, fmt.Errorf("s3store: %w", err)
	}
	layout := pages.Layout{Name: "s3store", BlocksPerPage: blocksPerPage, Probe: true}
	return pages.New(s, layout)
}

var (
	goodBucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	goodRegion = regexp.MustCompile(`^[a-z0-9-]+$`)
	goodPrefix = regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9._-]*/)+$`)
)

func newServer(config aws.Config, bucket string, o options) (*server, error) {
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{lease.ErrInvalidRequest}, args...)...)
	}
	if !goodBucket.MatchString(bucket) {
		return nil, invalid("%q is not the name of a bucket", bucket)
	}
	if !strings.HasSuffix(o.prefix, "/") {
		o.prefix += "/" // or it might be a prefix of another
	}
	if !goodPrefix.MatchString(o.prefix) {
		return nil, invalid("the prefix %q: want letters, digits and -_. between single slashes", o.prefix)
	}
	if config.Credentials == nil {
		return nil, invalid("no credentials")
	}
	own := config.BaseEndpoint != nil // an endpoint of its own
	if config.Region == "" && own {
		config.Region = "us-east-1" // which servers other than Amazon's expect, or ignore
	}
	switch {
	case config.Region == "":
		return nil, invalid("no region: set the parameter region, or AWS_REGION")
	case !goodRegion.MatchString(config.Region):
		return nil, invalid("%q is not a region", config.Region)
	}
	endpoint := fmt.Sprintf("https://s3.%s.amazonaws.com", config.Region)
	if strings.HasPrefix(config.Region, "cn-") {
		endpoint += ".cn"
	}
	base, err := parseEndpoint(cmp.Or(aws.ToString(config.BaseEndpoint), endpoint))
	if err != nil {
		return nil, err
	}
	path := own || strings.Contains(bucket, ".") // a certificate is for one label
	if o.pathStyle != nil {
		path = *o.pathStyle
	}
	if path {
		base.Path += "/" + bucket
	} else {
		base.Host = bucket + "." + base.Host
	}
	credentials := config.Credentials
	if _, cached := credentials.(*aws.CredentialsCache); !cached {
		credentials = aws.NewCredentialsCache(credentials) // or every request may fetch new ones
	}
	return &server{
		client:      httpClient(config.HTTPClient),
		credentials: credentials,
		signer:      v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), // as S3 wants it
		region:      config.Region,
		base:        base,
		bucket:      bucket,
		prefix:      o.prefix,
	}, nil
}

func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		err = errors.New("it is not of that form")
	}
	if err != nil { // which may have a password in it
		return nil, fmt.Errorf("%w: the endpoint: want https://host:port", lease.ErrInvalidRequest)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// httpClient returns c if it is not one that this package can improve: no
// redirection is followed, because a request is signed for one host.
func httpClient(c aws.HTTPClient) aws.HTTPClient {
	own := &http.Client{}
	switch c := c.(type) {
	case *awshttp.BuildableClient:
		own.Transport, own.Timeout = pooled(c.GetTransport()), c.GetTimeout()
	case *http.Client:
		*own = *c
	case nil:
		own.Transport = pooled(http.DefaultTransport.(*http.Transport).Clone())
	default:
		return c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return own
}

// pooled lets t keep as many connections as the store uses at once, of HTTP/1.1: one of HTTP/2
// whose packets are dropped would be used again by every later try.
func pooled(t *http.Transport) *http.Transport {
	const atOnce = 64
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, atOnce)
	return t
}
