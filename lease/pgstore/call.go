package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// row is what a statement reads of a block.
type row struct {
	now   time.Time // the server's clock
	block driver.Block
}

func scan(r pgx.CollectableRow) (row, error) {
	var now, version, from, until int64
	var durable string // only some statements return it
	var b driver.Block
	columns := []any{&now, &b.Node, &b.Nodes, &version, &b.Nonce, &b.Owner, &from, &until, &durable}
	if err := r.Scan(columns[:len(r.FieldDescriptions())]...); err != nil {
		return row{}, err
	}
	b.Version, b.Start, b.End = uint64(version), second(from), second(until)
	return row{time.UnixMicro(now), b}, nil
}

// second is the time of a second since 1970, and the zero Time that of 0.
func second(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}

// read reads a block.
func (s *Store) read(ctx context.Context, sql string, node uint32) (row, error) {
	rows, err := query(ctx, s, scan, sql, int64(node))
	if err != nil {
		return row{}, err
	}
	if len(rows) == 0 {
		return row{}, errors.New("the block's row is missing; was it deleted?")
	}
	return rows[0], nil
}

// write is a block as it was read and as it shall be.
type write struct{ before, after driver.Block }

// write makes those writes whose block no one else has written since it was
// read, in one statement, once the server's clock has reached a time. It returns
// the nodes written.
func (s *Store) write(ctx context.Context, reached time.Time, writes ...write) (map[uint32]bool, error) {
	var node, version []int64
	for _, w := range writes {
		node, version = append(node, int64(w.before.Node)), append(version, int64(w.before.Version))
	}
	args := []any{node, version}
	for _, side := range []func(write) driver.Block{
		func(w write) driver.Block { return w.before }, func(w write) driver.Block { return w.after },
	} {
		var nonce, owner []string
		var from, until []int64 // 0 before the first grant
		for _, w := range writes {
			b := side(w)
			nonce, owner = append(nonce, b.Nonce), append(owner, b.Owner)
			from, until = append(from, max(b.Start.Unix(), 0)), append(until, max(b.End.Unix(), 0))
		}
		args = append(args, nonce, owner, from, until)
	}
	rows, err := query(ctx, s, func(r pgx.CollectableRow) (node uint32, err error) {
		var durable string
		return node, r.Scan(&node, &durable)
	}, s.sql.write, append(args, max(reached.UnixMicro(), 0))...)
	written := make(map[uint32]bool)
	for _, n := range rows {
		written[n] = true
	}
	return written, err
}

// tries bounds how often a statement is retried after a serialization failure.
// That is rare, except under a stricter isolation level than read committed:
// there concurrent clients acquire blocks one after another.
const tries = 200

// query runs one statement in its own transaction, and returns its rows. It
// retries it if the server rolled it back in favour of another.
func query[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	once := func() ([]T, error) {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		heard := conn.Conn().PgConn().CustomData()
		delete(heard, warning)
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		all, err := pgx.CollectRows(rows, scan)
		if text, warned := heard[warning]; err == nil && warned {
			err = fmt.Errorf("%w: %s", errWarned, text)
		}
		return all, err
	}
	for try := 0; ; try++ {
		all, err := once()
		if err == nil || try == tries || !rolledBack(err) {
			return all, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
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
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warning] = n.Message
		}
		if pass != nil {
			pass(c, n)
		}
	}
	return config
}

// The server's error codes, from appendix A of its manual.
const (
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	uniqueViolation       = "23505"
	readOnlyTransaction   = "25006"
	insufficientPrivilege = "42501"
	undefinedTable        = "42P01"
	noSuchDatabase        = "3D000"
	noSuchSchema          = "3F000"
	wrongRoleOrPassword   = "28" // a class
)

// misconfigured reports whether the server will refuse until an operator
// changes something. A dropped table is created again.
func misconfigured(code string) bool {
	return code == insufficientPrivilege || code == noSuchDatabase || code == noSuchSchema ||
		strings.HasPrefix(code, wrongRoleOrPassword)
}

// rolledBack reports whether the server undid a statement because of another
// one.
func rolledBack(err error) bool {
	return code(err) == serializationFailure || code(err) == deadlockDetected
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// failed adds to err what was being done, to which table, and, if an operator
// can fix the cause, how.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	hint, reason := "", code(err)
	if misconfigured(reason) {
		err = fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
	}
	switch reason {
	case readOnlyTransaction:
		hint = " (the server is read-only, a standby perhaps; connect to the primary)"
	case insufficientPrivilege:
		hint = " (the role needs SELECT and UPDATE on the table; if there is no table yet, it needs CREATE on the " +
			"schema, or an operator runs Store.Schema)"
	case undefinedTable:
		s.nodes.Store(nil)
		hint = " (was it dropped? all grants are forgotten then; see the package documentation)"
	}
	return fmt.Errorf("pgstore: %s in table %s: %w%s", what, s.name, err, hint)
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
