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

func init() {
	driver.Register("s3", openURL)
}

const urlForm = "s3://bucket/prefix?region=REGION&endpoint=URL&style=path"

// openURL is the [driver.Opener] of s3.
func openURL(text string) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("s3store: not an address of S3, want " + urlForm) // which may hold a key
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("s3store: the parameters of the address cannot be parsed, want " + urlForm)
	}
	var opts []Option
	if strings.Trim(u.Path, "/") != "" {
		opts = append(opts, WithPrefix(strings.TrimPrefix(u.Path, "/")))
	}
	var region string
	endpoint := os.Getenv("AWS_ENDPOINT_URL_S3")
	for name, values := range query {
		value := values[len(values)-1]
		switch {
		case value == "" || len(values) > 1:
			return nil, fmt.Errorf("s3store: the parameter %q of the address has %d values or an empty one", name, len(values))
		case name == "region":
			region = value
		case name == "endpoint":
			endpoint = value
		case name == "style" && (value == "path" || value == "host"):
			opts = append(opts, WithPathStyle(value == "path"))
		case name == "style":
			return nil, fmt.Errorf("s3store: the style %q of the address: want path or host", value)
		default:
			return nil, fmt.Errorf("s3store: unknown parameter %q of the address", name)
		}
	}
	// It reads the environment and files; credentials are retrieved by the first
	// call.
	loaded, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return nil, fmt.Errorf("s3store: the configuration of AWS's SDK: %w", err)
	}
	if region != "" {
		loaded.Region = region
	}
	if endpoint != "" {
		loaded.BaseEndpoint = aws.String(endpoint)
	}
	return New(loaded, u.Host, opts...)
}
