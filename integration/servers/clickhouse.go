package servers

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"os/exec"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// Engine is a fresh database on a ClickHouse. It is safe for concurrent use.
type Engine struct{ database }

// ClickHouse returns a fresh database on a ClickHouse of its own, a child of this process, or on
// the server of TRACEFLAKETEST_CLICKHOUSE_DSN, the address of its HTTP interface. The error is
// child.ErrNotInstalled if neither is available.
func ClickHouse(ctx context.Context) (*Engine, error) {
	exec := func(ctx context.Context, dsn *url.URL, sql string) error {
		_, err := post(ctx, dsn, sql)
		return err
	}
	d, err := kind{clickhouseVar, startClickHouse, exec, " SYNC"}.create(ctx)
	return &Engine{d}, err
}

const (
	clickhouseVar = "TRACEFLAKETEST_CLICKHOUSE_DSN"
	passwordVar   = "TRACEFLAKETEST_CHILD_PASSWORD"
)

func init() {
	child.Main("clickhouse", func(args []string) error {
		return serveClickHouse(args[0], args[1], args[2], os.Getenv(passwordVar))
	})
}

// startClickHouse starts this program again as a ClickHouse.
func startClickHouse(ctx context.Context) (*child.Server, string, error) {
	// npm calls the library libchdb.so on macOS too.
	lib, err := engineFile("ClickHouse", "@chdb/*/libchdb.so", clickhouseVar)
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "traceflake-chdb-")
	if err != nil {
		return nil, "", err
	}
	s, password := &child.Server{Name: "ClickHouse", Dir: dir}, rand.Text()
	s.Command = func() *exec.Cmd {
		cmd := child.Self("clickhouse", lib, dir, s.Address)
		cmd.Env = append(cmd.Env, passwordVar+"="+password)
		return cmd
	}
	s.Answers = s.Listens
	err = s.Start(ctx) // which chooses the address
	at := url.URL{Scheme: "http", User: url.UserPassword("default", password), Host: s.Address}
	return s, at.String(), err
}
