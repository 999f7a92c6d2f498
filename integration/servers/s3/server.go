package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Kind is a program that serves S3.
type Kind string

const (
	// Versity is Versity's S3 gateway, on files. It checks signatures and
	// policies.
	Versity Kind = "versitygw"
	// GoFakeS3 is a small server on a bbolt file. It checks no signature, and its responses may be
	// torn if the file is written meanwhile: send it one request at a time.
	GoFakeS3 Kind = "gofakes3"
	// MinIO is MinIO, on files. It checks signatures.
	MinIO Kind = "minio"
)

// Region is that of every server.
const Region = "us-east-1"

// Keys are those of a user.
type Keys struct{ AccessKey, SecretKey string }

var (
	// Root may do everything.
	Root = Keys{"rootaccesskey0000000", "root+secret/of+the+tests"}
	// User may do what a bucket's policy says. Only Versity has it.
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

// Server is a server of S3 on this machine.
type Server struct {
	kind          Kind
	program       string
	dir, endpoint string

	mu    sync.Mutex
	cmd   *exec.Cmd // nil when it is not running
	log   *bytes.Buffer
	ended chan struct{}
}

// ErrNotBuilt is returned if a server's program was not built.
var ErrNotBuilt = errors.New("s3: it was not built")

// Start starts a server, and returns when it answers. Its data is in a folder
// that Close removes.
func Start(ctx context.Context, kind Kind) (_ *Server, err error) {
	s := &Server{kind: kind}
	if s.program, err = program(kind); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "traceflake-s3-"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.endpoint = "http://" + l.Addr().String()
	if err := errors.Join(l.Close(), s.Run()); err != nil {
		return nil, err
	}
	return s, s.Wait(ctx)
}

func program(kind Kind) (string, error) {
	if kind != MinIO {
		return os.Executable()
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if found, _ := filepath.Glob(filepath.Join(dir, ".cache", "minio", "minio-*")); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s; make minio", ErrNotBuilt, kind)
}

// ForTest is Start for a test, and Close when it ends.
func ForTest(tb testing.TB, kind Kind) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Start(ctx, kind)
	if errors.Is(err, ErrNotBuilt) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Endpoint is the server's address, as a URL.
func (s *Server) Endpoint() string { return s.endpoint }

// Run starts the server, with the data that it had.
func (s *Server) Run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil
	}
	address := strings.TrimPrefix(s.endpoint, "http://")
	cmd := exec.Command(s.program)
	cmd.Env = append(os.Environ(), envKind+"="+string(s.kind), envDir+"="+s.dir, envAddress+"="+address)
	if s.kind == MinIO {
		cmd = exec.Command(s.program, "server", s.dir, "--address", address, "--quiet")
		cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+Root.AccessKey, "MINIO_ROOT_PASSWORD="+Root.SecretKey, "MINIO_BROWSER=off")
	}
	s.log = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if _, err := cmd.StdinPipe(); err != nil { // open while this process lives
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("s3: %s: %w", s.kind, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.cmd, s.ended = cmd, ended
	return nil
}

// Kill ends the server as a crash does.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	<-s.ended
	s.cmd = nil
	return err
}

// Signal sends a signal to the server, SIGSTOP or SIGCONT for instance.
func (s *Server) Signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("s3: %s is not running", s.kind)
	}
	return s.cmd.Process.Signal(signal)
}

// Wait returns when the server answers.
func (s *Server) Wait(ctx context.Context) error {
	for {
		status, _, err := s.Do(ctx, http.MethodGet, "/", nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		s.mu.Lock()
		ended := s.ended
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return fmt.Errorf("s3: %s: %w: status %d, %w", s.kind, ctx.Err(), status, err)
		case <-ended:
			return fmt.Errorf("s3: %s ended: %s", s.kind, s.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

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
	r, err := http.NewRequestWithContext(ctx, method, s.endpoint+path, bytes.NewReader(body))
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

// Close kills the server and removes its data.
func (s *Server) Close() error {
	err := s.Kill()
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
