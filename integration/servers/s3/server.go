package s3

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// Region is the server's.
const Region = "us-east-1"

// Keys are those of a user.
type Keys struct{ AccessKey, SecretKey string }

var (
	// Root may do everything.
	Root = Keys{"rootaccesskey0000000", "root+secret/of+the+tests"}
	// User may do what a bucket's policy says.
	User = Keys{"useraccesskey0000000", "user+secret/of+the+tests"}
)

// Setenv sets the environment variables from which AWS's SDK takes keys, and
// none other.
func (k Keys) Setenv(tb testing.TB) {
	tb.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": k.AccessKey, "AWS_SECRET_ACCESS_KEY": k.SecretKey, "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		tb.Setenv(name, value)
	}
}

// Server is a server of S3 on this machine: Run starts it with the data that it had, Kill ends it
// as a crash does.
type Server struct{ *child.Server }

// Start starts a server, and returns when it answers. Its data is in a folder that Close removes.
func Start(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp("", "traceflake-s3-")
	if err != nil {
		return nil, err
	}
	s := &Server{child.New("s3", nil)}
	s.Dir = dir
	s.Command = func() *exec.Cmd { return child.Self(kind, dir, s.Address) }
	s.Answers = func(ctx context.Context) error {
		_, err := s.Client().ListBuckets(ctx, nil)
		return err
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ForTest is Start for a test, and Close when it ends.
func ForTest(tb testing.TB) *Server {
	tb.Helper()
	return child.ForTest(tb, Start)
}

// Endpoint is the server's address, as a URL.
func (s *Server) Endpoint() string { return "http://" + s.Address }

// Client returns a client of Root's.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{Region: Region, BaseEndpoint: aws.String(s.Endpoint()), UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: Root.AccessKey, SecretAccessKey: Root.SecretKey}, nil
		})})
}

// Bucket makes a bucket.
func (s *Server) Bucket(ctx context.Context, name string) error {
	_, err := s.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	return err
}
