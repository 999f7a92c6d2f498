package s3

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3bolt"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The environment variables of a server.
const (
	envKind    = "TRACEFLAKE_S3_SERVER"
	envDir     = "TRACEFLAKE_S3_DIR"
	envAddress = "TRACEFLAKE_S3_ADDRESS"
)

// Main returns at once, unless this process was started to be a server.
func Main() {
	var serve func(dir, address string) error
	switch kind := Kind(os.Getenv(envKind)); kind {
	case "":
		return
	case Versity:
		serve = serveVersity
	case GoFakeS3:
		serve = serveGoFakeS3
	default:
		serve = func(string, string) error { return fmt.Errorf("there is no server %q", kind) }
	}
	// A server ends with the process that started it, even if that is killed.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := serve(os.Getenv(envDir), os.Getenv(envAddress)); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveVersity(dir, address string) error {
	if err := (meta.XattrMeta{}).Test(dir); err != nil {
		return fmt.Errorf("the file system of %s has no extended attributes (TMPDIR names another place): %w", dir, err)
	}
	be, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	const most = 4096
	return embedgw.RunVersityGW(context.Background(), be, &embedgw.Config{
		RootUserAccess: Root.AccessKey, RootUserSecret: Root.SecretKey, Region: Region,
		Ports: []string{address}, MaxConnections: most, MaxRequests: most, MultipartMaxParts: 1,
		VirtualDomain: "localhost", Quiet: true, KeepAlive: true, IAMService: accounts{},
	})
}

// accounts has Root and User.
type accounts struct{ auth.IAMServiceSingle }

func (accounts) GetUserAccount(access string) (auth.Account, error) {
	switch access {
	case Root.AccessKey:
		return auth.Account{Access: Root.AccessKey, Secret: Root.SecretKey, Role: auth.RoleAdmin}, nil
	case User.AccessKey:
		return auth.Account{Access: User.AccessKey, Secret: User.SecretKey, Role: auth.RoleUser}, nil
	}
	return auth.Account{}, auth.ErrNoSuchUser
}

func (a accounts) ResolveAccounts(keys []string) (missing []string, err error) {
	for _, key := range keys {
		if _, err := a.GetUserAccount(key); err != nil {
			missing = append(missing, key)
		}
	}
	return missing, nil
}

func serveGoFakeS3(dir, address string) error {
	be, err := s3bolt.NewFile(filepath.Join(dir, "objects.db"))
	if err != nil {
		return err
	}
	server := http.Server{Addr: address, Handler: gofakes3.New(be).Server(), ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
