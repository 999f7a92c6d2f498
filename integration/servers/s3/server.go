package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

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

// Start starts a server, and returns when it answers. Its data is in a folder
// that Close removes.
func Start(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp("", "traceflake-s3-")
	if err != nil {
		return nil, err
	}
	s := &Server{child.New("s3", nil)}
	s.Dir = dir
	s.Command = func() *exec.Cmd { return child.Self(kind, dir, s.Address) }
	s.Answers = func(ctx context.Context) error {
		status, _, err := s.Do(ctx, http.MethodGet, "/", nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
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

// Bucket makes a bucket for a test.
func (s *Server) Bucket(tb testing.TB, name string) {
	tb.Helper()
	s.MustDo(tb, http.MethodPut, "/"+name, nil)
}

// MustDo is Do for what the server must not refuse.
func (s *Server) MustDo(tb testing.TB, method, path string, body []byte) []byte {
	tb.Helper()
	status, answer, err := s.Do(context.Background(), method, path, body)
	if err != nil || status >= http.StatusMultipleChoices {
		tb.Fatalf("%s %s: %d %s, %v", method, path, status, answer, err)
	}
	return answer
}

// Do sends a request as Root. The path may have a query.
func (s *Server) Do(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, s.Endpoint()+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if err := Sign(r, body); err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Sign signs a request as Root.
func Sign(r *http.Request, body []byte) error {
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", payload)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	keys := aws.Credentials{AccessKeyID: Root.AccessKey, SecretAccessKey: Root.SecretKey}
	return signer.SignHTTP(r.Context(), keys, r, payload, "s3", Region, time.Now())
}
