package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// DefaultTable is the name of the table unless [WithTable] gives another.
const DefaultTable = "traceflake_leases"

// Store keeps leases in one table of a PostgreSQL database. It is safe for
// concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	asked driver.NodeRange // zero fields are taken from the table
	name  string           // of the table
	sql   statements
	nodes atomic.Pointer[driver.NodeRange] // set when the table has been checked
}

var _ driver.Store = (*Store)(nil)

// Option configures a [Store].
type Option func(*Store)

// WithTable names the table, with its schema if it is not the first one of the
// search path: "name" or "schema.name", letters, digits and underscores. Fleets
// with different secrets need different tables.
func WithTable(name string) Option { return func(s *Store) { s.name = name } }

// At most 50 characters leave room for the names of constraints and indexes.
var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// New returns a store with at most two connections of its own, which it closes
// after 30 s without a call. config is that of [pgxpool.ParseConfig], or of the
// program's own pool: pool.Config(). New does not connect: the first call that
// reaches the server looks up the table, and creates it if necessary. Errors of
// invalid arguments wrap [lease.ErrInvalidRequest].
//
// Zero fields of nodes are the store's own: every node, in blocks of
// [driver.DefaultBlockSize] in a new table. Clients of one table may have
// different nodes; fleets that share a secret but no store must not overlap.
//
// It has its own connections to see the server's warnings: a commit that was
// not replicated is no error of the server's.
func New(config *pgxpool.Config, nodes driver.NodeRange, opts ...Option) (*Store, error) {
	s := &Store{asked: nodes, name: DefaultTable}
	for _, opt := range opts {
		opt(s)
	}
	if config == nil {
		return nil, fmt.Errorf("pgstore: %w: no configuration", lease.ErrInvalidRequest)
	}
	if !tableName.MatchString(s.name) {
		return nil, fmt.Errorf("pgstore: %w: table %q, want name or schema.name of letters, digits and underscores, up to 50 each",
			lease.ErrInvalidRequest, s.name)
	}
	if _, err := s.asked.Resolve(cmp.Or(s.asked.BlockSize, 1)); err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	s.sql = statementsFor(pgx.Identifier(strings.Split(s.name, ".")).Sanitize(), cmp.Or(s.asked.BlockSize, driver.DefaultBlockSize))
	var err error
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), own(config)); err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	return s, nil
}

// Close implements [driver.Store]. It waits for calls and closes the
// connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// maxConflicts is how often others may take the block that an Acquire found.
const maxConflicts = 50

// Acquire implements [lease.Store]. It takes one of the first free blocks after a
// random one. It is two
// statements: one finds the block, the other takes it.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: %w", err)
	}
	nodes, err := s.setup(ctx)
	var g lease.Grant
	if err == nil {
		g, err = s.acquire(ctx, r, nodes)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	return g, nil
}

func (s *Store) acquire(ctx context.Context, r lease.Request, nodes driver.NodeRange) (lease.Grant, error) {
	first, last := bounds(nodes)
	for try := 0; ; try++ {
		limit := int64(8) << min(try, 3) // to choose from, more after a conflict
		from := first + rand.Int64N(last-first+1)
		found, err := query(ctx, s, scan, s.sql.free, r.Nonce, r.Now.Unix(), first, last, from, limit)
		if err != nil {
			return lease.Grant{}, err
		}
		if len(found) == 0 {
			return lease.Grant{}, fmt.Errorf("%w: all %d of the table are granted", lease.ErrNoFreeNode, nodes.Blocks())
		}
		one := found[rand.IntN(len(found))]
		if found[0].block.Nonce == r.Nonce {
			one, err = s.read(ctx, s.sql.getDurable, found[0].block.Node)
		}
		if err == nil {
			err = driver.CheckRequest(r, one.now)
		}
		if err != nil || one.block.Nonce == r.Nonce {
			return one.block.Grant(), err
		}
		next, err := one.block.Acquire(r)
		if err == nil {
			var written map[uint32]bool
			if written, err = s.write(ctx, time.Time{}, write{one.block, next}); err == nil && len(written) == 1 {
				return next.Grant(), nil
			}
		}
		// Or the same request was sent twice, and the other one took a block.
		if err != nil && !errors.Is(err, lease.ErrNoFreeNode) && code(err) != uniqueViolation {
			return lease.Grant{}, err
		}
		if try == maxConflicts {
			return lease.Grant{}, fmt.Errorf("%w: others took %d free ones first, one after another", lease.ErrNoFreeNode, try)
		}
		if err := pause(ctx, try); err != nil {
			return lease.Grant{}, err
		}
	}
}

// Renew implements [lease.Store]. It is one statement if the row is still what
// the grant says, and the client's clock is not ahead.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return s.change(ctx, "renew", g, r.Now.Add(-lease.MaxClockAhead), func(b driver.Block, now time.Time) (driver.Block, error) {
		if err := driver.CheckRequest(r, now); err != nil {
			return b, err
		}
		return b.Renew(g, r)
	})
}

// Release implements [lease.Store]. It is one statement, as Renew is.
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.change(ctx, "release", g, time.Time{}, func(b driver.Block, _ time.Time) (driver.Block, error) {
		return b.Release(g, nonce, unused)
	})
	return err
}

// Get implements [lease.Store]. It needs the primary, too: it waits for what
// it reads to be durable.
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	_, err := s.find(ctx, node)
	var r row
	if err == nil {
		r, err = s.read(ctx, s.sql.getDurable, node)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("get node %d", node), err)
	}
	return r.block.Grant(), nil
}

// find returns the nodes of the store if one of its blocks starts at node.
func (s *Store) find(ctx context.Context, node uint32) (driver.NodeRange, error) {
	nodes, err := s.setup(ctx)
	if err == nil {
		_, err = nodes.Index(node)
	}
	return nodes, err
}

// change replaces the block of g by what rule returns for it. It begins with the
// block that g says there is, once the server's clock has reached a time. If the
// row differs or the time has not come, nothing is written, and rule decides on
// the row and the time that are read then.
func (s *Store) change(ctx context.Context, what string, g lease.Grant, reached time.Time,
	rule func(b driver.Block, now time.Time) (driver.Block, error)) (lease.Grant, error) {
	nodes, err := s.find(ctx, g.Node)
	b := driver.Block{Node: g.Node, Nodes: nodes.BlockSize, Start: g.Start, End: g.End,
		Nonce: g.Nonce, Version: g.Version, Owner: g.Owner}
	var r row
	for try := 0; err == nil; try++ {
		var next driver.Block
		if next, err = rule(b, r.now); err != nil {
			break
		}
		var written map[uint32]bool
		if written, err = s.write(ctx, reached, write{b, next}); err == nil && len(written) == 1 {
			return next.Grant(), nil
		}
		if err == nil {
			r, err = s.read(ctx, s.sql.get, g.Node)
		}
		if err == nil && try > 0 && r.block == b {
			err = errNotWritten
		}
		b, reached = r.block, time.Time{}
	}
	return lease.Grant{}, s.failed(ctx, fmt.Sprintf("%s node %d", what, g.Node), err)
}

// errNotWritten is returned if a row keeps its version and is not written.
var errNotWritten = errors.New("the row was not written; does a rule, trigger or policy of the table interfere?")

// bounds returns the first and the last node.
func bounds(r driver.NodeRange) (first, last int64) {
	return int64(r.First), int64(r.First) + int64(r.Nodes) - 1
}
