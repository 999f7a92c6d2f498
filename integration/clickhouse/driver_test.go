package clickhouse_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// faulty is a database in which statements fail, or that rewrites them, and one in
// which an INSERT may touch only one partition.
type faulty struct {
	driver.Connector
	fail    func(string) bool // of statements, not of queries
	rewrite func(string) string

	settings string // as in a URL
}

var errFaulty = errors.New("the connection broke")

func (e *engine) faulty(f *faulty) *sql.DB {
	e.t.Helper()
	options, err := chgo.ParseDSN(e.DSN() + "?max_partitions_per_insert_block=1&" + f.settings)
	if err != nil {
		e.t.Fatal(err)
	}
	f.Connector = chgo.Connector(options)
	db := sql.OpenDB(f)
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

// Connect implements driver.Connector.
func (f *faulty) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	return faultyConn{c, f}, err
}

type faultyConn struct {
	driver.Conn
	*faulty
}

// ExecContext implements driver.ExecerContext.
func (c faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.fail != nil && c.fail(query) {
		return nil, errFaulty
	}
	if c.rewrite != nil {
		query = c.rewrite(query)
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.rewrite != nil {
		query = c.rewrite(query)
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

var distributed = regexp.MustCompile("AS `?\\w*`?\\.?`\\w+`\nENGINE = Distributed\\(`c`, (`\\w+`|currentDatabase\\(\\)), (`\\w+`), .*\\)")

// oneServer turns statements for a cluster into ones that a single server
// without Keeper runs: a Distributed table over one shard, itself, which such a
// server calls a Proxy.
func oneServer(query string) string {
	query = strings.ReplaceAll(query, "engine = 'Distributed'", "engine = 'Proxy'")
	query = strings.ReplaceAll(query, "clusterAllReplicas('c', system.tables)", "system.tables")
	query = strings.Replace(query, "ENGINE = ReplicatedMergeTree", "ENGINE = MergeTree", 1)
	query = distributed.ReplaceAllString(query, "AS remote('127.0.0.1', $1, $2)")
	return strings.ReplaceAll(query, " ON CLUSTER `c`", "")
}
