// Package s3 runs Versity's S3 gateway for tests, on files. It checks signatures and policies, and
// it is a process, so that it can be killed and stopped: the test's own program, started again. So
// the TestMain of a package that starts one begins with [Main].
package s3

import (
	"context"
	"fmt"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// kind is what a server is started as.
const kind = "s3"

// Main returns at once, unless this process was started to be a server.
func Main() { child.Main(kind, func(args []string) error { return serve(args[0], args[1]) }) }

func serve(dir, address string) error {
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
