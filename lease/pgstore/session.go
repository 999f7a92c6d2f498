package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// warning is the key under which a connection keeps the server's last warning.
const warning = "traceflake: warning"

// prepare configures connections to keep the server's warnings. Statements are sent in one round
// trip and unnamed, so that they leave nothing behind in a session that pgbouncer then gives to
// another client.
func prepare(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" { // Severity is in the server's language
			c.CustomData()[warning] = n.Message
		}
	}
}

// session calls f with a connection.
//
// A warning is an error: if the wait for a synchronous standby is cancelled, the server commits
// with a warning, and a failover may lose that commit.
func (o *objects) session(ctx context.Context, f func(*pgx.Conn) error) error {
	return o.pool.AcquireFunc(ctx, func(pooled *pgxpool.Conn) error {
		c := pooled.Conn()
		heard := c.PgConn().CustomData()
		delete(heard, warning)
		if err := f(c); err != nil {
			return err
		}
		if text, warned := heard[warning]; warned {
			return fmt.Errorf(
				"the server warned, and it is unknown whether the commit is durable: %s", text)
		}
		return nil
	})
}

// query runs one statement in a transaction of its own.
func (o *objects) query(ctx context.Context, sql string, args ...any) (found []row, err error) {
	var read []row
	err = o.session(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, o.sql(sql), args...)
		if err == nil {
			read, err = pgx.CollectRows(rows, pgx.RowToStructByName[row])
		}
		return err
	})
	if err == nil { // otherwise what was read may not have been committed
		found = read
	}
	return found, err
}

// create creates the table and the view, unless they exist.
func (o *objects) create(ctx context.Context) error {
	return o.session(ctx, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: beginSQL}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, o.sql(createSQL))
			return err
		})
	})
}

// sql returns statement with the full names of the table and the view. No statement relies on the
// server's search path, which may be another client's behind pgbouncer.
func (o *objects) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{o.schema}.Sanitize())
}

// undone reports whether the server did nothing because of another client: a serialization failure
// or a deadlock.
func undone(err error) bool { return slices.Contains([]string{"40001", "40P01"}, code(err)) }
