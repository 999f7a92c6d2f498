// Package s3 runs Versity's S3 gateway for tests, on files. It checks signatures and policies, and
// it is a process, so that it can be killed and stopped: the test's own program, started again.
package s3

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/traceflake/traceflake/integration/servers/child"
)

const (
	// Region is the server's region.
	Region = "us-east-1"
	// Bucket is the server's bucket.
	Bucket = "leases"

	kind = "s3" // what a server is started as
)

// Keys are the access keys of a user.
type Keys struct{ AccessKey, SecretKey string }

var (
	// Root may do everything.
	Root = Keys{"rootaccesskey0000000", "root+secret/of+the+tests"}
	// User may do what a bucket policy allows.
	User = Keys{"useraccesskey0000000", "user+secret/of+the+tests"}
)

// Setenv sets the environment variables from which AWS's SDK takes keys, and clears those that
// would override them.
func (k Keys) Setenv(tb testing.TB) {
	tb.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": k.AccessKey, "AWS_SECRET_ACCESS_KEY": k.SecretKey,
		"AWS_SESSION_TOKEN": "",
		"AWS_REGION":        "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		tb.Setenv(name, value)
	}
}

func init() {
	child.Main(kind, func(args []string) error { return serve(args[0], args[1]) })
}

func serve(dir, address string) error {
	if err := (meta.XattrMeta{}).Test(dir); err != nil {
		return fmt.Errorf(
			"the file system of %s has no extended attributes (TMPDIR sets another directory): %w",
			dir, err)
	}
	be, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	accounts, err := auth.NewInternal(
		auth.Account{Access: Root.AccessKey, Secret: Root.SecretKey, Role: auth.RoleAdmin}, dir)
	if err == nil {
		err = accounts.CreateAccount(
			auth.Account{Access: User.AccessKey, Secret: User.SecretKey, Role: auth.RoleUser})
	}
	if err != nil && !errors.Is(err, auth.ErrUserExists) {
		return err
	}
	const most = 4096
	return embedgw.RunVersityGW(context.Background(), be, &embedgw.Config{
		RootUserAccess: Root.AccessKey, RootUserSecret: Root.SecretKey, Region: Region,
		Ports: []string{address}, MaxConnections: most, MaxRequests: most, MultipartMaxParts: 1,
		VirtualDomain: "localhost", Quiet: true, KeepAlive: true, IAMService: accounts,
	})
}

// Server is an S3 server on this machine: Run starts it with the data that it had, Kill ends it
// as a crash does.
type Server struct{ *child.Server }

// Start starts a server that has a [Bucket], and returns when it answers. Close removes its data.
func Start(ctx context.Context) (_ *Server, err error) {
	s := &Server{&child.Server{Name: kind}}
	if s.Dir, err = os.MkdirTemp("", "traceflake-s3-"); err != nil {
		return nil, err
	}
	s.Command = func() *exec.Cmd { return child.Self(kind, s.Dir, s.Address) }
	s.Answers = func(ctx context.Context) error {
		_, err := s.Client().ListBuckets(ctx, nil)
		return err
	}
	if err = s.Start(ctx); err == nil {
		_, err = s.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Endpoint returns the server's URL.
func (s *Server) Endpoint() string { return "http://" + s.Address }

// Client returns a client with Root's keys.
func (s *Server) Client() *s3.Client {
	return s3.New(s3.Options{Region: Region, BaseEndpoint: aws.String(s.Endpoint()),
		UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: Root.AccessKey, SecretAccessKey: Root.SecretKey},
				nil
		})})
}
