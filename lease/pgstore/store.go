package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// DefaultTable is the name of the table of blocks unless [WithTable] sets another.
const DefaultTable = "traceflake_leases"

// Store keeps leases in two tables of a PostgreSQL database. It is safe for
// concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	name    string                // of the table of blocks
	schemas []string              // where it may be; empty: in any
	used    atomic.Pointer[place] // the store in use; nil until it has been described
}

var _ driver.Store = (*Store)(nil)

func init() {
	driver.Register("postgres", openURL)
	driver.Register("postgresql", openURL)
}

// openURL is the [driver.Opener] of postgres://user:password@host:port/database.
func openURL(dsn string) (driver.Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// The error, and that of net/url, may contain the password.
		why, inURL := errors.Unwrap(err), new(url.Error)
		if why == nil || errors.As(err, &inURL) {
			why = errors.New("want postgres://user:password@host:port/database?parameter=value, with %23 for # in a password and so on")
		}
		return nil, fmt.Errorf("pgstore: %w: the URL: %w", lease.ErrInvalidRequest, why)
	}
	return New(config)
}

// Option configures a [Store].
type Option func(*Store)

// WithTable sets the name of the table of blocks: "name" or "schema.name", letters, digits and
// underscores. The name of the table that describes the store has "_store" after it.
func WithTable(name string) Option { return func(s *Store) { s.name = name } }

// At most 50 characters leave room for the names of constraints and indexes.
var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,49}\.)?[A-Za-z_][A-Za-z0-9_]{0,49}$`)

// New returns a store with at most two connections of its own, which it closes
// after 30 s without a call. config is that of [pgxpool.ParseConfig], or of the
// program's own pool: pool.Config(). New does not connect. Errors of
// invalid arguments wrap [lease.ErrInvalidRequest].
//
// The store has its own connections to see the server's warnings: a commit that was
// not replicated is no error of the server's.
func New(config *pgxpool.Config, opts ...Option) (*Store, error) {
	s := &Store{name: DefaultTable}
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
	config = own(config)
	s.schemas = schemas(config)
	if schema, name, named := strings.Cut(s.name, "."); named {
		s.schemas, s.name = []string{schema}, name
	}
	var err error
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	return s, nil
}

// Close implements [driver.Store]. It waits for calls and closes the connections. When ctx ends,
// connections to a server that does not respond are left to be closed in the background, which
// takes at most 15 s.
func (s *Store) Close(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pgstore: close: %w", ctx.Err())
	}
}

// Acquire implements [lease.Store]. It grants the block that has been free for longest. It is one
// statement, or more if others want the last free blocks at this moment.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, fmt.Errorf("pgstore: %w", err)
	}
	p, err := s.setup(ctx)
	var g lease.Grant
	if err == nil {
		g, err = s.acquire(ctx, p, r)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, "acquire", err)
	}
	return g, nil
}

func (s *Store) acquire(ctx context.Context, p *place, r lease.Request) (lease.Grant, error) {
	// What the rule makes of any free block, apart from its node and version.
	next, err := driver.Block{}.Acquire(driver.Shorten(r, p.Description))
	if err != nil {
		return lease.Grant{}, err
	}
	for try := 0; ; try++ {
		lock := "SKIP LOCKED"
		if try > 0 {
			lock = "" // whoever has locked the last free block may not take it
		}
		found, err := query(ctx, s, p.scan, strings.Replace(s.statement(p.schema, acquireSQL), "{skip}", lock, 1),
			r.Nonce, p.ID, next.Start.Unix(), next.End.Unix(), r.Owner, earliest(r))
		switch {
		case code(err) == uniqueViolation: // the same request was sent twice
		case err != nil:
			return lease.Grant{}, err
		default:
			if err := driver.CheckRequest(r, found[0].now); err != nil || found[0].block.Version > 0 {
				return lease.Grant(found[0].block), err
			}
			if !found[0].free {
				return lease.Grant{}, fmt.Errorf("%w: all %d of the table are granted", lease.ErrNoFreeNode, p.nodes.Blocks())
			}
		}
		if try == tries {
			return lease.Grant{}, errNotWritten
		}
		if err := pause(ctx, try); err != nil {
			return lease.Grant{}, err
		}
	}
}

// earliest is when, in microseconds of the server's clock, a client's request can be granted.
func earliest(r lease.Request) int64 { return r.Now.Add(-lease.MaxClockAhead).UnixMicro() }

// Renew implements [lease.Store]. It is one statement if the row is still what
// the grant says, and the client's clock is not ahead.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return s.change(ctx, "renew", g, earliest(r), func(p *place, b driver.Block, now time.Time) (driver.Block, error) {
		if err := driver.CheckRequest(r, now); err != nil {
			return b, err
		}
		return b.Renew(g, driver.Shorten(r, p.Description))
	})
}

// Release implements [lease.Store]. It is one statement, as Renew is.
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.change(ctx, "release", g, 0, func(_ *place, b driver.Block, _ time.Time) (driver.Block, error) {
		return b.Release(g, nonce, unused)
	})
	return err
}

// change replaces the block of g by what rule returns for it. It begins with the
// block that g says there is, once the server's clock has reached a time. If the
// row differs or the time has not come, nothing is written, and rule decides on
// the row and the time that are read then.
func (s *Store) change(ctx context.Context, what string, g lease.Grant, reached int64,
	rule func(p *place, b driver.Block, now time.Time) (driver.Block, error)) (lease.Grant, error) {
	p, err := s.setupFor(ctx, g.Node)
	r := row{block: driver.Block(g)}
	if p != nil {
		r.block.Nodes = p.BlockSize
	}
	for try := 0; err == nil; try++ {
		b := r.block
		var next driver.Block
		if next, err = rule(p, b, r.now); err != nil {
			break
		}
		var written []row
		written, err = query(ctx, s, p.scan, s.statement(p.schema, replaceSQL),
			b.Node, p.ID, b.Version, b.Nonce, b.Owner, b.Start.Unix(), b.End.Unix(), next.Nonce, next.Owner, next.End.Unix(), reached)
		if err == nil && len(written) == 1 {
			return lease.Grant(written[0].block), nil
		}
		if err == nil {
			r, err = s.get(ctx, p, g.Node)
		}
		if err == nil && try > 0 && r.block == b {
			err = errNotWritten
		}
		reached = 0
	}
	return lease.Grant{}, s.failed(ctx, fmt.Sprintf("%s node %d", what, g.Node), err)
}

// errNotWritten is returned if a row that could be written is not.
var errNotWritten = errors.New("the row was not written; does a rule, trigger or policy of the table interfere?")

// Get implements [lease.Store]. It needs the primary, too: it waits for what
// it reads to be durable.
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	p, err := s.setupFor(ctx, node)
	var r row
	if err == nil {
		r, err = s.get(ctx, p, node)
	}
	if err != nil {
		return lease.Grant{}, s.failed(ctx, fmt.Sprintf("get node %d", node), err)
	}
	return lease.Grant(r.block), nil
}

func (s *Store) get(ctx context.Context, p *place, node uint32) (row, error) {
	rows, err := query(ctx, s, p.scan, s.statement(p.schema, getSQL), node)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: the block's row is missing", lease.ErrReplaced)
	}
	if err != nil {
		return row{}, err
	}
	return rows[0], nil
}

// setupFor returns the place of the store, if one of its blocks starts at node.
func (s *Store) setupFor(ctx context.Context, node uint32) (*place, error) {
	p, err := s.setup(ctx)
	if err == nil {
		_, err = p.nodes.Index(node)
	}
	return p, err
}
