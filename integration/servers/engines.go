// Package servers provides tests, examples and benchmarks with a real ClickHouse
// and a real PostgreSQL without an installed server.
//
// Both are child processes on loopback. ClickHouse is this program started again: it loads the
// library libchdb, and answers HTTP as clickhouse-go and the OpenTelemetry Collector's ClickHouse
// exporter use it. Both come from npm packages that `make engines` fetches into .cache/engines at
// the repository root; the environment variable TRACEFLAKETEST_ENGINES sets another folder.
//
// With TRACEFLAKETEST_CLICKHOUSE_DSN (http://user:password@host:8123) or
// TRACEFLAKETEST_POSTGRES_DSN (postgres://user:password@host/database) set, the same calls use that
// server. Each [Engine] and each [PostgresServer] is a fresh database, dropped by Close, so that
// tests do not collide.
//
// Limits of this ClickHouse: results are held in memory, there are no sessions, no external tables,
// and a running statement cannot be cancelled (max_execution_time works).
package servers

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// engineFile finds one fetched file by its pattern below node_modules of $TRACEFLAKETEST_ENGINES,
// or of .cache/engines in the repository.
func engineFile(engine, pattern, variable string) (string, error) {
	folder := cmp.Or(os.Getenv("TRACEFLAKETEST_ENGINES"),
		filepath.Join(child.Repository, ".cache/engines"))
	found, err := filepath.Glob(filepath.Join(folder, "node_modules", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%s: %w: run `make engines` (needs Node and npm), or set %s to a "+
			"server's DSN", engine, child.ErrNotInstalled, variable)
	}
	return filepath.Abs(found[0])
}
