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
	"github.com/traceflake/traceflake/randflake"
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

var _ interface {
	lease.Store
	lease.Admin
} = (*Store)(nil)

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithBlockSize sets how many nodes a block has, a power of two from 1 to
//  131072. It is fixed when the table is created. The default is the table's
//     block size, and [driver.DefaultBlockSize] for a new one.
func WithBlockSize(nodes int) Option {
	return optionFunc(func(s *Store) { s.asked.BlockSize = driver.Count(nodes, 1) })
}

// WithNodes limits this client to nodes [first, first+n); the default is every
// node. Both are multiples of the block size. Clients of one table may differ;
// fleets that share a secret but no store must not overlap.
func WithNodes(first, n int) Option {
	return optionFunc(func(s *Store) { s.asked.First, s.asked.Nodes = driver.Count(first, 0), driver.Count(n, 1) })
}

// WithTable names the table, with its schema if it is not the first one of the
// search path: "name" or "schema.name", letters, digits and underscores. Fleets
// with different secrets need different tables.
func WithTable(name string) Option {
	return optionFunc(func(s *Store) { s.name = name })
}

// At most 50 characters leave room for the names of constraints and indexes.
var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// New returns a store in the database of pool. It does not connect: the first
// call that reaches the server looks up the table, and creates it if necessary.
// Errors of invalid options wrap [lease.ErrInvalidRequest].
//
// The caller must close the pool.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	s := &Store{pool: pool, name: DefaultTable}
	for _, opt := range opts {
		opt.apply(s)
	}
	if pool == nil {
		return nil, fmt.Errorf("pgstore: %w: no pool", lease.ErrInvalidRequest)
	}
	if !tableName.MatchString(s.name) {
		return nil, fmt.Errorf("pgstore: %w: table %q, want name or schema.name of letters, digits and underscores, up to 50 each",
			lease.ErrInvalidRequest, s.name)
	}
	if err := s.asked.CheckAsked(); err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	s.sql = statementsFor(pgx.Identifier(strings.Split(s.name, ".")).Sanitize(), cmp.Or(s.asked.BlockSize, driver.DefaultBlockSize))
	return s, nil
}

// Acquire implements [lease.Store]. It takes the first free block after a
// random one.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	r.Now = r.Now.Truncate(time.Microsecond) // as PostgreSQL counts
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: %w", err)
	}
	next, err := driver.Block{}.Acquire(r)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: acquire: %w", err)
	}
	nodes, err := s.setup(ctx)
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	first, last := bounds(nodes)
	args := []any{
		r.Nonce, r.Now.UnixMicro(), next.Start.Unix(), next.GrantedUntil.Unix(),
		first, last, lease.MaxClockAhead.Microseconds(), r.Owner, int64(0),
	}
	for try := 0; ; try++ {
		args[len(args)-1] = first + rand.Int64N(last-first+1) // where the search begins
		a, err := s.call(ctx, "acquire", s.sql.acquire, args...)
		if err != nil {
			return lease.Grant{}, err
		}
		if err := driver.CheckRequest(r, a.now); err != nil {
			return lease.Grant{}, fmt.Errorf("pgstore: %w", err)
		}
		if a.block.Nodes > 0 {
			return a.block.Grant(), nil
		}
		if !a.ok {
			return lease.Grant{}, fmt.Errorf("pgstore: acquire: %w: all %d of table %s are granted", lease.ErrNoFreeNode, nodes.Blocks(), s.name)
		}
		// There are free blocks, but others have just taken them, or are about to.
		if try == 50 {
			return lease.Grant{}, fmt.Errorf("pgstore: acquire: %w: the free ones have been locked by other transactions for a while", lease.ErrNoFreeNode)
		}
		if err := pause(ctx, try); err != nil {
			return lease.Grant{}, fmt.Errorf("pgstore: acquire: %w", err)
		}
	}
}

// Renew implements [lease.Store].
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	r.Now = r.Now.Truncate(time.Microsecond) // as PostgreSQL counts
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: renew node %d: %w", g.Node, err)
	}
	if err := s.findOwn(ctx, "renew", g, r.Nonce); err != nil {
		return lease.Grant{}, err
	}
	a, err := s.call(ctx, "renew", s.sql.renew, append(identify(g, r.Nonce),
		min(r.Now.Add(r.TTL).Unix(), randflake.EndOfLife), r.Now.UnixMicro(), lease.MaxClockAhead.Microseconds())...)
	if err != nil {
		return lease.Grant{}, err
	}
	if err := driver.CheckRequest(r, a.now); err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: renew node %d: %w", g.Node, err)
	}
	next, err := a.block.Renew(g, r)
	if err == nil && !a.ok {
		err = errNotWritten
	}
	if err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: renew node %d: %w", g.Node, err)
	}
	return next.Grant(), nil
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	if err := s.findOwn(ctx, "release", g, nonce); err != nil {
		return err
	}
	a, err := s.call(ctx, "release", s.sql.release, append(identify(g, nonce), ceil(bounded(unused)))...)
	if err != nil {
		return err
	}
	_, err = a.block.Release(g, nonce, unused)
	if err == nil && !a.ok {
		err = errNotWritten
	}
	if err != nil {
		return fmt.Errorf("pgstore: release node %d: %w", g.Node, err)
	}
	return nil
}

// Get implements [lease.Store]. It needs the primary, too: it waits for what
// it reads to be durable.
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	if err := s.find(ctx, "get", node); err != nil {
		return lease.Grant{}, err
	}
	a, err := s.call(ctx, "get", s.sql.get, int64(node))
	if err != nil {
		return lease.Grant{}, err
	}
	return a.block.Grant(), nil
}

// errNotWritten is returned if the statement and the rule of driver.Block,
// which it repeats, disagree.
var errNotWritten = errors.New("the row was not written as it should have been; does a rule, trigger or policy of the table interfere?")

// find checks that the store has a block that starts at node and returns its node range.
func (s *Store) find(ctx context.Context, what string, node uint32) error {
	nodes, err := s.setup(ctx)
	if err != nil {
		return s.failed(ctx, what, err)
	}
	if _, err = nodes.Index(node); err != nil {
		return fmt.Errorf("pgstore: %s: %w", what, err)
	}
	return nil
}

// findOwn is find for a write by the holder of g, which the rule must not refuse
// whatever is stored.
func (s *Store) findOwn(ctx context.Context, what string, g lease.Grant, nonce string) error {
	own := driver.Block{Node: g.Node, Nodes: g.Nodes, Nonce: g.Nonce, Version: g.Version}
	if _, err := own.Release(g, nonce, g.End); err != nil {
		return fmt.Errorf("pgstore: %s: %w", what, err)
	}
	return s.find(ctx, what, g.Node)
}

// bounds returns the first and the last node.
func bounds(r driver.NodeRange) (first, last int64) {
	return int64(r.First), int64(r.First) + int64(r.Nodes) - 1
}

// identify returns the arguments by which a statement finds a grant's block,
// checks that it is still the grant's, and names its write.
func identify(g lease.Grant, nonce string) []any {
	return []any{int64(g.Node), int64(g.Nodes), g.Nonce, int64(g.Version), nonce}
}

// bounded returns t, or the nearest time that PostgreSQL can represent with the
// same meaning here.
func bounded(t time.Time) time.Time {
	const far = randflake.EndOfLife + 1<<32
	if t.Unix() < 0 {
		return time.Unix(0, 0)
	}
	if t.Unix() > far {
		return time.Unix(far, 0)
	}
	return t
}

func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
