package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// nobody is the user of the server if this process is root, which PostgreSQL refuses.
const nobody = 65534

// startPostgres starts a PostgreSQL as a child of this process.
func startPostgres(ctx context.Context) (_ *child.Server, dsn string, err error) {
	binary, err := engineFile("PostgreSQL", "@embedded-postgres/*/native/bin/postgres", "TRACEFLAKE_POSTGRES_DSN")
	if err != nil {
		return nil, "", err
	}
	p := child.New("PostgreSQL", nil)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("servers: PostgreSQL: %w", err), p.Close())
		}
	}()
	if p.Dir, err = dataFolder("traceflake-postgres-"); err != nil {
		return nil, "", err
	}
	password, secret, data := rand.Text(), filepath.Join(p.Dir, "password"), filepath.Join(p.Dir, "data")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	bin, attributes := filepath.Dir(binary), &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process to handle
	if os.Geteuid() == 0 {
		// nobody may not be able to read the repository, so give it a copy.
		copied := filepath.Join(p.Dir, "native")
		if err := errors.Join(os.CopyFS(copied, os.DirFS(filepath.Dir(bin))), os.Chown(p.Dir, nobody, nobody), os.Chown(secret, nobody, nobody)); err != nil {
			return nil, "", err
		}
		bin, attributes.Credential = filepath.Join(copied, "bin"), &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "postgres", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.Dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	p.Command = func() *exec.Cmd {
		c := child.Foreign(filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", p.Port(), "-k", "", "-c", "logging_collector=off")
		c.Dir, c.SysProcAttr = p.Dir, attributes
		return c
	}
	p.Answers = func(ctx context.Context) error {
		dsn = fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", password, p.Address)
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}
	err = p.Start(ctx)
	return p, dsn, err
}
