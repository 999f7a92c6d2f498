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
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// postgres is a PostgreSQL that runs as a child of this process.
type postgres struct {
	dsn    string
	dir    string
	server *child.Server // nil until it is started
}

// nobody is the user of the server if this process is root, which PostgreSQL refuses.
const nobody = 65534

func startPostgres(ctx context.Context) (_ *postgres, err error) {
	binary, err := engineFile("PostgreSQL", "@embedded-postgres/*/native/bin/postgres", "TRACEFLAKE_POSTGRES_DSN")
	if err != nil {
		return nil, err
	}
	p := new(postgres)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	if p.dir, err = dataFolder("traceflake-postgres-"); err != nil {
		return nil, err
	}
	password := rand.Text()
	secret := filepath.Join(p.dir, "password")
	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("servers: PostgreSQL: %w", err)
	}
	bin := filepath.Dir(binary)
	if os.Geteuid() == 0 {
		// nobody may not be able to read the repository, so give it a copy.
		copied := filepath.Join(p.dir, "native")
		err := errors.Join(os.CopyFS(copied, os.DirFS(filepath.Dir(bin))), os.Chown(p.dir, nobody, nobody), os.Chown(secret, nobody, nobody))
		if err != nil {
			return nil, fmt.Errorf("servers: PostgreSQL: %w", err)
		}
		bin = filepath.Join(copied, "bin")
	}
	data := filepath.Join(p.dir, "data")
	initdb := p.command(exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "postgres", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"))
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("servers: PostgreSQL: initdb: %w\n%s", err, bytes.TrimSpace(out))
	}
	// PostgreSQL cannot choose a free port itself. Another process may take the
	// one chosen here before it does.
	for try := 0; ; try++ {
		err := p.serve(ctx, filepath.Join(bin, "postgres"), data, password)
		if err == nil || try == 2 || ctx.Err() != nil {
			return p, err
		}
	}
}

func (p *postgres) command(c *exec.Cmd) *exec.Cmd {
	c.Dir = p.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process to handle
	if os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return c
}

func (p *postgres) serve(ctx context.Context, binary, data, password string) error {
	addresses, err := child.Addresses(1)
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(addresses[0], ":")
	p.server = child.New("PostgreSQL", func() *exec.Cmd {
		return p.command(child.Foreign(binary, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", "", "-c", "logging_collector=off"))
	})
	if err := p.server.Run(); err != nil {
		return err
	}
	p.dsn = fmt.Sprintf("postgres://postgres:%s@%s/postgres?sslmode=disable", password, addresses[0])
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = child.Ready(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, p.dsn)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	}, p.server)
	if err != nil {
		err = errors.Join(err, p.server.Stop())
	}
	return err
}

// stop ends the server, if it runs, and removes its data. A nil p has neither.
func (p *postgres) stop() (err error) {
	if p == nil {
		return nil
	}
	if p.server != nil {
		err = p.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
