package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// warning is the key under which a connection keeps the server's last warning.
const warning = "traceflake: warning"

// prepare has connections keep the server's warnings. A statement is sent in one
// round trip and unnamed, so that it leaves nothing behind in a session that
// pgbouncer gives to another client next.
func prepare(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" { // Severity is in the server's language
			c.CustomData()[warning] = n.Message
		}
	}
}

// errNotWritten is returned if a row that could be written is not.
var errNotWritten = errors.New("the row was not written; does a rule, trigger or policy of the table interfere?")

// prevented reports whether an error may be due to another client: a serialization failure, a
// deadlock, a nonce that is being written, or a free block that is locked.
func prevented(err error) bool {
	return slices.Contains([]string{"40001", "40P01", "23505"}, code(err)) || errors.Is(err, errNotWritten)
}

// session calls f with a connection, and again while another client prevents what f does: often, under
// a stricter isolation level than read committed.
//
// A warning is an error: if the wait for a synchronous standby is cancelled, the server commits with
// a warning, and a failover may lose that commit.
func (s *store) session(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	for try := range 200 {
		err = s.pool.AcquireFunc(ctx, func(pooled *pgxpool.Conn) error {
			c := pooled.Conn()
			heard := c.PgConn().CustomData()
			delete(heard, warning)
			if err := f(c); err != nil {
				return err
			}
			if text, warned := heard[warning]; warned {
				return fmt.Errorf("the server warned, and it is unknown whether the commit is durable: %s", text)
			}
			return nil
		})
		if !prevented(err) {
			break
		}
		time.Sleep(rand.N(time.Duration(min(try+1, 20)) * 2 * time.Millisecond))
	}
	return err
}

// one runs one statement, which is a transaction of its own, and returns its first row. Without one the
// error is [pgx.ErrNoRows].
func one[T any](ctx context.Context, s *store, scan pgx.RowToFunc[T], sql string, args ...any) (row T, err error) {
	var read T
	err = s.session(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err == nil {
			read, err = pgx.CollectOneRow(rows, scan)
		}
		return err
	})
	if err == nil { // otherwise what was read may not have been committed
		row = read
	}
	return row, err
}

// transaction runs an operator's statements, after those of other operators.
func (s *store) transaction(ctx context.Context, statements func(pgx.Tx) error) error {
	return s.session(ctx, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: beginSQL}, statements)
	})
}
