package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/traceflake/traceflake/lease/driver"
)

func init() { driver.Register("s3", openURL) }

const urlForm = "s3://bucket/prefix?region=REGION&endpoint=URL"

// openURL is the [driver.Opener] of s3.
func openURL(text string) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("s3store: not the URL of a bucket, want " + urlForm) // it may contain a key
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("s3store: the parameters of the URL cannot be parsed, want " + urlForm)
	}
	for name, values := range query {
		if name != "region" && name != "endpoint" {
			return nil, fmt.Errorf("s3store: unknown parameter %q of the URL, want %s", name, urlForm)
		}
		if len(values) > 1 || values[0] == "" {
			return nil, fmt.Errorf("s3store: the parameter %q of the URL has %d values or an empty one", name, len(values))
		}
	}
	// It reads the environment and files; credentials are retrieved by the first call.
	loaded, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return nil, fmt.Errorf("s3store: the configuration of AWS's SDK: %w", err)
	}
	if region := query.Get("region"); region != "" {
		loaded.Region = region
	}
	for _, endpoint := range []string{os.Getenv("AWS_ENDPOINT_URL_S3"), query.Get("endpoint")} {
		if endpoint != "" {
			loaded.BaseEndpoint = aws.String(endpoint)
		}
	}
	return New(loaded, u.Host, strings.Trim(u.Path, "/"))
}
