package s3store_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/lease/s3store"
)

func TestMain(m *testing.M) {
	s3.Main()
	leasetest.Worker()
	os.Exit(m.Run())
}

const bucket = "leases"

// started returns a server that has a bucket.
func started(tb testing.TB) *s3.Server {
	tb.Helper()
	s := s3.ForTest(tb)
	if err := s.Bucket(tb.Context(), bucket); err != nil {
		tb.Fatal(err)
	}
	return s
}

func config(endpoint string, keys s3.Keys) aws.Config {
	provider := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: keys.AccessKey, SecretAccessKey: keys.SecretKey}, nil
	})
	return aws.Config{Region: s3.Region, BaseEndpoint: aws.String(endpoint), Credentials: provider}
}

var prefixes atomic.Int64

// harness makes each storage a prefix of its own.
func harness(c aws.Config) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(testing.TB) leasetest.Storage {
		return storage(c, fmt.Sprintf("storage/%d/", prefixes.Add(1)))
	}}
}

func storage(c aws.Config, prefix string) leasetest.Storage {
	return leasetest.Storage{Open: func() (driver.Store, error) { return s3store.New(c, bucket, prefix) }}
}

func TestConformance(t *testing.T) {
	leasetest.Run(t, harness(config(started(t).Endpoint(), s3.Root)))
}
