package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// Engine is a fresh database on a ClickHouse. It is safe for concurrent use.
type Engine struct{ database }

// ClickHouse returns a fresh database on a ClickHouse of its own, a child of this process, or on
// the server of TRACEFLAKETEST_CLICKHOUSE_DSN, the address of its HTTP interface. The error is
// child.ErrNotInstalled if neither is available.
func ClickHouse(ctx context.Context) (*Engine, error) {
	exec := func(ctx context.Context, dsn, sql string) error {
		_, err := post(ctx, dsn, sql)
		return err
	}
	d, err := kind{clickhouseVar, startClickHouse, exec, " SYNC"}.create(ctx)
	return &Engine{d}, err
}

const (
	clickhouseVar = "TRACEFLAKETEST_CLICKHOUSE_DSN"
	// versionVar sets another version of chdb-core than version; the Makefile installs both.
	versionVar = "TRACEFLAKETEST_CLICKHOUSE_VERSION"
	version    = "26.7.3"
	// configVar names a configuration file of the engine.
	configVar   = "TRACEFLAKETEST_CLICKHOUSE_CONFIG"
	passwordVar = "TRACEFLAKETEST_CHILD_PASSWORD"
)

// startClickHouse starts Python with a ClickHouse inside.
func startClickHouse(ctx context.Context) (*child.Server, string, error) {
	python, err := child.Installed(
		"clickhouse-"+cmp.Or(os.Getenv(versionVar), version)+"/bin/python",
		"run `make engines`, or set "+clickhouseVar)
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "traceflake-clickhouse-")
	if err != nil {
		return nil, "", err
	}
	s, password := &child.Server{Name: "ClickHouse", Dir: dir}, rand.Text()
	s.Command = func() *exec.Cmd {
		cmd := exec.Command(python, filepath.Join(child.Repository,
			"integration/servers/clickhouse.py"), s.Address, dir, os.Getenv(configVar))
		cmd.Env = append(os.Environ(), passwordVar+"="+password)
		return cmd
	}
	s.Answers = s.Listens
	err = s.Start(ctx) // which chooses the address
	at := url.URL{Scheme: "http", User: url.UserPassword("default", password), Host: s.Address}
	return s, at.String(), err
}
