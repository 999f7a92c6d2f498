package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease/driver"
)

// row is what a statement reads of a block.
type row struct {
	now   time.Time // the server's clock
	block driver.Block
	free  bool // some block is, if this one was not granted
}

// scan reads a row, which must belong to the store in use.
func (p *place) scan(r pgx.CollectableRow) (row, error) {
	var now, version, from, until int64
	var store, durable string
	b, free := driver.Block{}, false
	columns := []any{&now, &store, &b.Node, &version, &b.Nonce, &b.Owner, &from, &until, &durable, &free}
	if err := r.Scan(columns[:len(r.FieldDescriptions())]...); err != nil {
		return row{}, err
	}
	b.Nodes, b.Version, b.Start, b.End = p.BlockSize, uint64(version), second(from), second(until)
	return row{time.UnixMicro(now), b, free}, p.same(store)
}

// second is the time of a second since 1970, and the zero Time that of 0.
func second(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func collect[T any](ctx context.Context, db querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// query runs one statement in its own transaction, and returns its rows.
func query[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	err = s.session(ctx, func(c *pgx.Conn) (err error) {
		all, err = collect(ctx, c, scan, sql, args...)
		return err
	})
	return all, err
}

// transaction runs an operator's statements in one transaction, whose commit waits for disk and
// standby.
func (s *Store) transaction(ctx context.Context, statements func(pgx.Tx) error) error {
	return s.session(ctx, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, s.statement("", beginSQL)); err != nil {
				return err
			}
			return statements(tx)
		})
	})
}

// tries bounds how often a statement is retried after a serialization failure.
// That is rare, except under a stricter isolation level than read committed:
// there concurrent clients acquire blocks one after another.
const tries = 200

// session calls f with a connection. It calls f again if the server rolled it back in
// favour of another client.
func (s *Store) session(ctx context.Context, f func(*pgx.Conn) error) error {
	once := func() error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		heard := conn.Conn().PgConn().CustomData()
		delete(heard, warning)
		err = f(conn.Conn())
		if text, warned := heard[warning]; err == nil && warned {
			err = fmt.Errorf("%w: %s", errWarned, text)
		}
		return err
	}
	for try := 0; ; try++ {
		err := once()
		if c := code(err); try == tries || c != serializationFailure && c != deadlockDetected {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// errWarned is returned for a statement after which the server warned. If the
// wait for a synchronous standby is cancelled, the server commits with a
// warning: a failover may lose that commit.
var errWarned = errors.New("the server warned, and it is unknown whether the commit is durable")

// warning is the key of the last warning among a connection's data.
const warning = "traceflake: warning"

// own returns config with few connections, which keep the server's warnings. A
// statement is sent in one round trip and unnamed, so that it leaves nothing
// behind in a session that pgbouncer gives to another client next.
func own(config *pgxpool.Config) *pgxpool.Config {
	config = config.Copy()
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.MinConns, config.MinIdleConns, config.MaxConns = 0, 0, 2
	config.MaxConnIdleTime, config.HealthCheckPeriod = 30*time.Second, 30*time.Second
	pass := config.ConnConfig.OnNotice
	config.ConnConfig.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" { // in every language of the server's
			c.CustomData()[warning] = n.Message
		}
		if pass != nil {
			pass(c, n)
		}
	}
	return config
}

// pause waits some milliseconds, more with each try.
func pause(ctx context.Context, try int) error {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(min(try+1, 20) * int(2*time.Millisecond)))))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
