package servers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// PostgresServer is a fresh database on a PostgreSQL. It is safe for concurrent use.
type PostgresServer struct {
	admin string
	dsn   *url.URL
	local *child.Server // nil for a server given by its DSN
}

// Postgres returns a fresh database on its own PostgreSQL, or on the server of
// TRACEFLAKE_POSTGRES_DSN. The error is [child.ErrNotInstalled] if neither is available; if a
// server does not answer, the error contains its address.
//
// The server keeps PostgreSQL's durable defaults, so a commit takes as long as this machine's disk.
func Postgres(ctx context.Context) (_ *PostgresServer, err error) {
	s := &PostgresServer{admin: os.Getenv("TRACEFLAKE_POSTGRES_DSN")}
	if s.admin == "" {
		if s.local, s.admin, err = startPostgres(ctx); err != nil {
			return nil, err
		}
	}
	name := "traceflake_" + strings.ToLower(rand.Text())
	if s.dsn, err = url.Parse(s.admin); err != nil || s.dsn.Host == "" {
		return nil, errors.New(
			"servers: TRACEFLAKE_POSTGRES_DSN must be postgres://user:password@host:port/database")
	}
	s.dsn.Path = "/" + name
	if err := s.exec(ctx, "CREATE DATABASE "+name); err != nil {
		if s.local != nil {
			err = errors.Join(err, s.local.Close())
		}
		return nil, err
	}
	return s, nil
}

// OnePostgres runs tests with one PostgreSQL, in which each [Postgres] is a database. It returns
// the status for os.Exit.
func OnePostgres(m *testing.M) int {
	server, err := Postgres(context.Background())
	if err != nil { // each test skips or fails
		return m.Run()
	}
	defer func() { _ = server.Close() }()
	if err := os.Setenv("TRACEFLAKE_POSTGRES_DSN", server.DSN()); err != nil {
		panic(err)
	}
	return m.Run()
}

// DSN returns the address of the database, postgres://user:password@host:port/database.
func (s *PostgresServer) DSN() string { return s.dsn.String() }

// Close drops the database, with connections that are still open, and ends the server if it was
// started here.
func (s *PostgresServer) Close() error {
	if s.local != nil {
		return s.local.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+strings.TrimPrefix(s.dsn.Path, "/")+
		" WITH (FORCE)")
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

func (s *PostgresServer) exec(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		// pgx names the address and hides the password
		return fmt.Errorf("servers: PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// nobody is the user of the server if this process is root, which PostgreSQL refuses.
const nobody = 65534

// startPostgres starts a PostgreSQL as a child of this process.
func startPostgres(ctx context.Context) (_ *child.Server, dsn string, err error) {
	binary, err := engineFile("PostgreSQL", "@embedded-postgres/*/native/bin/postgres",
		"TRACEFLAKE_POSTGRES_DSN")
	if err != nil {
		return nil, "", err
	}
	p := &child.Server{Name: "PostgreSQL"}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("servers: PostgreSQL: %w", err), p.Close())
		}
	}()
	if p.Dir, err = os.MkdirTemp("", "traceflake-postgresql-"); err != nil {
		return nil, "", err
	}
	password, secret, data := rand.Text(), filepath.Join(p.Dir, "password"),
		filepath.Join(p.Dir, "data")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	// Ctrl-C is for this process to handle
	bin, attributes := filepath.Dir(binary), &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		// nobody may not be able to read the repository, so give it a copy.
		copied := filepath.Join(p.Dir, "native")
		if err := errors.Join(os.CopyFS(copied, os.DirFS(filepath.Dir(bin))),
			os.Chown(p.Dir, nobody, nobody), os.Chown(secret, nobody, nobody)); err != nil {
			return nil, "", err
		}
		bin, attributes.Credential = filepath.Join(copied, "bin"),
			&syscall.Credential{Uid: nobody, Gid: nobody}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username",
		"postgres", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.Dir, attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	p.Command = func() *exec.Cmd {
		c := child.Foreign(filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p",
			p.Port(), "-k", "", "-c", "logging_collector=off")
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
