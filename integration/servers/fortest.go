package servers

import (
	"context"
	"errors"
	"os"
	"testing"
)

// ClickHouseForTest returns an Engine that is closed when the test ends. If
// no engine is available it skips the test, or fails it if CI is set.
func ClickHouseForTest(tb testing.TB) *Engine {
	tb.Helper()
	e, err := ClickHouse(context.Background())
	need(tb, err)
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// PostgresForTest returns a PostgresServer that is closed when the test ends,
// by the same rule as ClickHouseForTest.
func PostgresForTest(tb testing.TB) *PostgresServer {
	tb.Helper()
	s, err := Postgres(context.Background())
	need(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func need(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}
