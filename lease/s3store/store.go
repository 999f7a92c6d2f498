package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

const (
	// defaultPrefix begins every key unless [New] or the URL sets another prefix.
	defaultPrefix = "traceflake/leases/"

	// blocksPerPage makes 256 pages of 16384 blocks.
	blocksPerPage = 64
)

func init() { stores.Register("s3", openURL) }

const urlForm = "s3://bucket/prefix?region=REGION&endpoint=URL"

// openURL opens the store at an s3:// URL.
func openURL(text string) (stores.Store, error) {
	u, err := driver.ParseURL("s3store", text, urlForm, "region", "endpoint")
	if err != nil {
		return nil, err
	}
	if u.Host == "" || u.User != nil {
		return nil, errors.New("s3store: want " + urlForm) // which may contain a key
	}
	query := u.Query()
	// load reads the environment and files.
	load := func(ctx context.Context) (aws.Config, error) {
		loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(query.Get("region")))
		if err != nil {
			err = fmt.Errorf("s3store: the configuration of AWS's SDK: %w", err)
			err = answers.Explain("-", err)
		}
		return loaded, err
	}
	loaded, err := load(context.Background())
	if err != nil {
		return nil, err
	}
	// The first call retrieves credentials, and a later one retrieves others when these have
	// expired, or were refused: keys in a file do not expire.
	loaded.Credentials = aws.CredentialsProviderFunc(
		func(ctx context.Context) (aws.Credentials, error) {
			now, err := load(ctx)
			if err != nil {
				return aws.Credentials{}, err
			}
			return now.Credentials.Retrieve(ctx)
		})
	if endpoint := cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3")); endpoint != "" {
		loaded.BaseEndpoint = &endpoint
	}
	return New(loaded, u.Host, strings.Trim(u.Path, "/"))
}

// New returns a store in a bucket, whose keys begin with prefix: letters, digits and the characters
// -_. between slashes; "" is traceflake/leases/. Fleets with different secrets need different
// prefixes; no prefix may begin with another.
//
// It uses the region, the credentials, the BaseEndpoint and the HTTPClient of cfg, which package
// github.com/aws/aws-sdk-go-v2/config loads. The client must not repeat a request, as those of
// config and of net/http do not. New sends no request. Errors of invalid arguments wrap
// [lease.ErrInvalidRequest].
func New(cfg aws.Config, bucket, prefix string) (stores.Store, error) {
	s, err := newServer(cfg, bucket, prefix)
	if err != nil {
		return nil, driver.Invalid("s3store: %w", err)
	}
	return stores.New(s, driver.Layout{Name: "s3store", BlocksPerPage: blocksPerPage})
}

var (
	goodPlace  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]+:([A-Za-z0-9_-][A-Za-z0-9._-]*/)+$`)
	goodRegion = regexp.MustCompile(`^[a-z0-9-]+$`)
)

func newServer(cfg aws.Config, bucket, prefix string) (*objects, error) {
	// or it might be a prefix of another
	prefix = strings.TrimSuffix(cmp.Or(prefix, defaultPrefix), "/") + "/"
	own := aws.ToString(cfg.BaseEndpoint) // an endpoint of its own
	if cfg.Region == "" && own != "" {
		cfg.Region = "us-east-1" // which servers other than Amazon's expect, or ignore
	}
	endpoint := fmt.Sprintf("https://s3.%s.amazonaws.com", cfg.Region)
	if strings.HasPrefix(cfg.Region, "cn-") {
		endpoint += ".cn"
	}
	base, err := driver.ParseServer(cmp.Or(own, endpoint))
	switch {
	case !goodPlace.MatchString(bucket + ":" + prefix):
		return nil, fmt.Errorf("the bucket %q, the prefix %q: want the name of a bucket, and "+
			"letters, digits and -_. between single slashes", bucket, prefix)
	case cfg.Credentials == nil:
		return nil, fmt.Errorf("no credentials")
	case !goodRegion.MatchString(cfg.Region):
		return nil, fmt.Errorf("%q is not a region: set the parameter region, or AWS_REGION",
			cfg.Region)
	case err != nil:
		return nil, err
	}
	if own != "" && (path.Base(base.Path) == bucket || strings.HasPrefix(base.Host, bucket+".")) {
		return nil, fmt.Errorf("the endpoint %s contains the bucket: remove it there", own)
	}
	if own != "" || strings.Contains(bucket, ".") { // a certificate is for one label
		base.Path += "/" + bucket
	} else {
		base.Host = bucket + "." + base.Host
	}
	credentials := cfg.Credentials
	if _, cached := credentials.(*aws.CredentialsCache); !cached {
		credentials = aws.NewCredentialsCache(credentials) // or every request may fetch new ones
	}
	return &objects{
		client:      httpClient(cfg.HTTPClient),
		credentials: credentials,
		region:      cfg.Region,
		base:        base,
		bucket:      bucket,
		prefix:      prefix,
	}, nil
}

// httpClient returns c, or a client with the settings of the SDK's client, that follows no
// redirect.
func httpClient(c aws.HTTPClient) aws.HTTPClient {
	if c == nil {
		c = awshttp.NewBuildableClient()
	}
	if sdk, ok := c.(*awshttp.BuildableClient); ok {
		t := sdk.GetTransport()
		// HTTP/1.1: every retry would use the same HTTP/2 connection again, even if its packets
		// are dropped.
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, 64) // the store uses 32 at once
		c = &http.Client{Transport: t, Timeout: sdk.GetTimeout()}
	}
	if c, ok := c.(*http.Client); ok {
		return driver.WithoutRedirects(c)
	}
	return c // ask sees whether it followed a redirect
}
