package pgstore

import (
	"context"
	"fmt"
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

// query runs a statement in a transaction of its own.
//
// A warning is an error: if the wait for a synchronous standby is cancelled, the server commits
// with a warning, and a failover may lose that commit.
//
// After an error the connection is closed, so that the next call connects again: to the primary, if
// this server no longer is, with the settings and rights that the role has then.
func (o *objects) query(ctx context.Context, sql string, args ...any) ([]row, error) {
	pooled, err := o.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer pooled.Release()
	heard := pooled.Conn().PgConn().CustomData()
	delete(heard, warning)
	answer, _ := pooled.Conn().Query(ctx, o.sql(sql), args...) // CollectRows returns its error
	rows, err := pgx.CollectRows(answer, pgx.RowToStructByName[row])
	if text, warned := heard[warning]; err == nil && warned {
		err = fmt.Errorf("the server warned, and it is unknown whether the commit is durable: %s",
			text)
	}
	if err != nil { // what was read may not have been committed
		_ = pooled.Conn().Close(ctx)
		return nil, err
	}
	return rows, nil
}

// sql returns statement with the full names of the table and the view. No statement relies on the
// server's search path, which may be another client's behind pgbouncer.
func (o *objects) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{o.schema}.Sanitize())
}
