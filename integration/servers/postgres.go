package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// PostgresServer is a fresh database on a PostgreSQL. It is safe for concurrent use.
type PostgresServer struct{ database }

const postgresVar = "TRACEFLAKETEST_POSTGRES_DSN"

// Postgres returns a fresh database on its own PostgreSQL, or on the server of
// TRACEFLAKETEST_POSTGRES_DSN. The error is [child.ErrNotInstalled] if neither is available.
//
// The server keeps PostgreSQL's durable defaults, so a commit takes as long as this machine's disk.
func Postgres(ctx context.Context) (*PostgresServer, error) {
	exec := func(ctx context.Context, dsn *url.URL, sql string) error {
		conn, err := pgx.Connect(ctx, dsn.String())
		if err != nil {
			return err // with the address, without the password
		}
		_, err = conn.Exec(ctx, sql)
		return errors.Join(err, conn.Close(ctx))
	}
	d, err := kind{postgresVar, startPostgres, exec, " WITH (FORCE)"}.create(ctx)
	return &PostgresServer{d}, err
}

// OnePostgres runs tests with one PostgreSQL, in which each [Postgres] is a database. It returns
// the status for os.Exit.
func OnePostgres(m *testing.M) int {
	server, err := Postgres(context.Background())
	if err != nil { // each test skips or fails
		return m.Run()
	}
	defer func() { _ = server.Close() }()
	if err := os.Setenv(postgresVar, server.DSN()); err != nil {
		panic(err)
	}
	return m.Run()
}

// Connect returns a connection for a test, closed when the test ends.
func (s *PostgresServer) Connect(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.DSN())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// nobody is the user of the server if this process is root, which PostgreSQL refuses.
const nobody = 65534

// startPostgres starts a PostgreSQL as a child of this process.
func startPostgres(ctx context.Context) (p *child.Server, dsn string, err error) {
	binary, err := engineFile("PostgreSQL", "@embedded-postgres/*/native/bin/postgres",
		postgresVar)
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "traceflake-postgresql-")
	if err != nil {
		return nil, "", err
	}
	p = &child.Server{Name: "PostgreSQL", Dir: dir}
	password, secret, data := rand.Text(), filepath.Join(dir, "password"),
		filepath.Join(dir, "data")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return p, "", err
	}
	// Ctrl-C is for this process to handle
	bin, attributes := filepath.Dir(binary), &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		// nobody may not be able to read the repository, so give it a copy.
		copied := filepath.Join(dir, "native")
		if err := errors.Join(os.CopyFS(copied, os.DirFS(filepath.Dir(bin))),
			os.Chown(dir, nobody, nobody), os.Chown(secret, nobody, nobody)); err != nil {
			return p, "", err
		}
		bin, attributes.Credential = filepath.Join(copied, "bin"),
			&syscall.Credential{Uid: nobody, Gid: nobody}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username",
		"postgres", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return p, "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	p.Command = func() *exec.Cmd {
		c := child.Foreign(filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p",
			p.Port(), "-k", "", "-c", "logging_collector=off")
		c.Dir, c.SysProcAttr = dir, attributes
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
