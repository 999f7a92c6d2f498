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

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// answer is the row that every statement returns.
type answer struct {
	now   time.Time // the server's clock
	ok    bool
	block driver.Block // zero if there is none
}

// tries bounds how often a statement is retried after a serialization failure.
// That is rare, except under a stricter isolation level than read committed:
// there concurrent clients acquire blocks one after another.
const tries = 200

// call runs one statement after setup, in its own transaction, and retries it
// if the server rolled it back in favour of another.
func (s *Store) call(ctx context.Context, what, sql string, args ...any) (answer, error) {
	for try := 0; ; try++ {
		a, err := s.once(ctx, sql, args...)
		if err != nil && try < tries && rolledBack(err) {
			err = pause(ctx, try)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return answer{}, s.failed(ctx, what, err)
		}
		return a, nil
	}
}

func (s *Store) once(ctx context.Context, sql string, args ...any) (answer, error) {
	rows, err := s.query(ctx, sql, args...)
	if err != nil {
		return answer{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

// query sends a statement in one round trip, unnamed, so that it leaves
// nothing behind in a session that pgbouncer gives to another client next.
func (s *Store) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return s.pool.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

func scan(row pgx.CollectableRow) (a answer, err error) {
	var (
		now, version, from, until *int64
		node, nodes               *int32
		nonce, owner              *string
		durable                   string
	)
	if err := row.Scan(&now, &durable, &a.ok, &node, &nodes, &version, &nonce, &owner, &from, &until); err != nil {
		return a, err
	}
	a.now = time.UnixMicro(*now)
	if node == nil {
		return a, nil
	}
	a.block = driver.Block{Node: uint32(*node), Nodes: uint32(*nodes), Version: uint64(*version)}
	if nonce != nil {
		a.block.Nonce = *nonce
	}
	if owner != nil {
		a.block.Owner = *owner
	}
	if from != nil {
		a.block.Start = time.Unix(*from, 0).UTC()
	}
	if until != nil {
		a.block.GrantedUntil = time.Unix(*until, 0).UTC()
	}
	return a, nil
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
// one. A unique violation means that one client sent the same request twice at
// once.
func rolledBack(err error) bool {
	switch code(err) {
	case serializationFailure, deadlockDetected, uniqueViolation:
		return true
	}
	return false
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
		hint = " (the role needs SELECT and UPDATE on the table; if there is no table yet, or one of an older " +
			"version of this library, it needs CREATE on the schema and must own the table, or an operator runs Store.Schema)"
	case undefinedTable:
		s.nodes.Store(nil)
		hint = " (was it dropped? all grants are forgotten then; see the package documentation)"
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = errors.New("the block's row is missing; was it deleted?")
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
