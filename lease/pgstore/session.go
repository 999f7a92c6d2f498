package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// warning is the key under which a connection keeps the server's last warning.
const warning = "traceflake: warning"

// prepare configures connections to keep the server's warnings. Statements are sent in one round
// trip and unnamed, so that they leave nothing behind in a session that pgbouncer then gives to
// another client.
func prepare(config *pgx.ConnConfig) {
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	// pgbouncer refuses it, and no statement relies on it
	delete(config.RuntimeParams, "search_path")
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
//
// After an error the connection is closed, so that the next call connects again: to the primary, if
// this server no longer is, with the settings and rights that the role has then.
func session[T any](ctx context.Context, o *objects,
	f func(*pgx.Conn) (T, error)) (none T, err error) {
	pooled, err := o.pool.Acquire(ctx)
	if err != nil {
		return none, err
	}
	defer pooled.Release()
	heard := pooled.Conn().PgConn().CustomData()
	delete(heard, warning)
	result, err := f(pooled.Conn())
	if text, warned := heard[warning]; err == nil && warned {
		err = fmt.Errorf("the server warned, and it is unknown whether the commit is durable: %s",
			text)
	}
	if err != nil { // what was read may not have been committed
		if !undone(err) {
			_ = pooled.Conn().Close(ctx)
		}
		return none, err
	}
	return result, nil
}

// query runs one statement in a transaction of its own.
func (o *objects) query(ctx context.Context, sql string, args ...any) ([]row, error) {
	return session(ctx, o, func(c *pgx.Conn) ([]row, error) {
		rows, err := c.Query(ctx, o.sql(sql), args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByName[row])
	})
}

// create creates the table and the view, unless they exist.
func (o *objects) create(ctx context.Context) error {
	_, err := session(ctx, o, func(c *pgx.Conn) (none struct{}, err error) {
		return none, pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: beginSQL},
			func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, o.sql(createSQL))
				return err
			})
	})
	return err
}

// sql returns statement with the full names of the table and the view. No statement relies on the
// server's search path, which may be another client's behind pgbouncer.
func (o *objects) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{o.schema}.Sanitize())
}

// undone reports whether the server did nothing because of another client: a serialization failure
// or a deadlock.
func undone(err error) bool { return slices.Contains([]string{"40001", "40P01"}, code(err)) }
