package pgstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
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

// transaction runs statements in one transaction, whose commit waits for disk and standby.
func (s *Store) transaction(ctx context.Context, statements func(pgx.Tx) error) error {
	return s.session(ctx, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT "+durableSQL); err != nil {
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

// The server's error codes, from appendix A of its manual.
const (
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	uniqueViolation       = "23505"
	readOnlyTransaction   = "25006"
	insufficientPrivilege = "42501"
	undefinedColumn       = "42703"
	undefinedTable        = "42P01"
	duplicateTable        = "42P07"
	undefinedObject       = "42704" // an unknown parameter of the URL
	invalidParameter      = "22023" // a parameter of the URL with an invalid value
	protocolViolation     = "08P01" // pgbouncer's code for a parameter that it does not know, among others
	noSuchDatabase        = "3D000"
	noSuchSchema          = "3F000"
	wrongRoleOrPassword   = "28" // a class
)

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// misconfigured reports whether a server will refuse until an operator changes something.
func misconfigured(err error) bool {
	var untrusted *tls.CertificateVerificationError
	switch c := code(err); c {
	case insufficientPrivilege, undefinedObject, invalidParameter, noSuchDatabase, noSuchSchema:
		return true
	case protocolViolation:
		return strings.Contains(err.Error(), "unsupported startup parameter")
	default:
		return strings.HasPrefix(c, wrongRoleOrPassword) || errors.As(err, &untrusted) ||
			strings.Contains(err.Error(), "server refused TLS connection")
	}
}

// rights is what a role needs.
var rights = fmt.Sprintf("grant SELECT and UPDATE on %s, SELECT on %[1]s%s, and USAGE on their schema", DefaultTable, suffix)

// failed adds to err what was being done, to which table, and, if an operator
// can fix the cause, how.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	hint, reason, missing := "", code(err), lease.ErrNoStore
	if s.used.Load() != nil {
		missing = lease.ErrReplaced
	}
	err, wrong := told(err)
	if wrong {
		err = fmt.Errorf("%w: %w", lease.ErrMisconfigured, err)
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	switch reason {
	case readOnlyTransaction:
		hint = " (the server is read-only, a standby perhaps; connect to the primary)"
	case insufficientPrivilege:
		hint = " (" + rights + "; to create the store, the role needs CREATE on the schema: name its own with ?search_path=SCHEMA)"
	case undefinedTable:
		err = fmt.Errorf("%w: %w", missing, err)
	case duplicateTable:
		err = fmt.Errorf("%w: %w", lease.ErrExists, err)
	case undefinedColumn:
		err = fmt.Errorf("%w: %w", lease.ErrSchemaVersion, err)
	}
	return fmt.Errorf("pgstore: %s, table %s: %w%s", what, s.name, err, hint)
}

// brief is an error with a shorter text.
type brief struct {
	error
	text string
}

func (b brief) Error() string { return b.text }
func (b brief) Unwrap() error { return b.error }

// told returns err with each of its causes said once, and reports whether each of them needs an
// operator. pgx tries every address of every host with and without TLS, and repeats in each
// error which and for whom.
func told(err error) (error, bool) {
	var failed *pgconn.ConnectError
	causes := []error{err}
	if errors.As(err, &failed) {
		causes[0] = failed.Unwrap()
		if all, ok := causes[0].(interface{ Unwrap() []error }); ok {
			causes = all.Unwrap()
		}
	}
	var texts []string
	wrong := true
	for _, cause := range causes {
		wrong = wrong && misconfigured(cause)
		text := cause.Error()
		server, network := new(pgconn.PgError), new(net.OpError)
		switch {
		case errors.As(cause, &server):
			text = server.Message + " (SQLSTATE " + server.Code + ")"
		case errors.As(cause, &network):
			text = network.Error()
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if failed == nil && code(err) == "" {
		return err, wrong
	}
	return brief{err, strings.Join(texts, "; ")}, wrong
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
