package pgstore

import (
	"context"
	"errors"
	"fmt"
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
	pool   *pgxpool.Pool
	schema string                // where it must be; "" if in any
	name   string                // of the table of blocks
	used   atomic.Pointer[place] // the store in use; nil until it has been described
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
		// The error contains the URL; where its parts are unclear, also the password.
		text := err.Error()
		if why := strings.LastIndex(text, "`: "); why < 0 || strings.Contains(text, "failed to parse as URL") {
			text = "want postgres://user:password@host:port/database, with special characters of the password as %XX"
		} else {
			text = text[why+len("`: "):]
		}
		return nil, fmt.Errorf("pgstore: %w: the URL: %s", lease.ErrInvalidRequest, text)
	}
	return New(config)
}

// Option configures a [Store].
type Option func(*Store)

// WithTable sets the name of the table of blocks: "name" or "schema.name", letters, digits and
// underscores. That of the table that describes the store has "_store" after it.
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
	settings := config.ConnConfig.RuntimeParams
	path := strings.TrimSpace(settings["search_path"])
	delete(settings, "search_path") // pgbouncer refuses it, and no statement relies on it
	if schema, name, named := strings.Cut(s.name, "."); named {
		s.schema, s.name = schema, name
	} else if s.schema = strings.Trim(path, `"`); strings.Contains(path, ",") {
		return nil, fmt.Errorf("pgstore: %w: search_path is %s, want the one schema of the tables", lease.ErrInvalidRequest, path)
	}
	var err error
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, fmt.Errorf("pgstore: %w", err)
	}
	return s, nil
}

// Close implements [driver.Store]. It waits for calls and closes the connections. When ctx ends,
// those to a server that does not respond are closed in the background, within 15 s.
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
func (s *Store) Acquire(ctx context.Context, r lease.Request) (g lease.Grant, err error) {
	defer s.explain(ctx, "acquire", &err)
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return g, err
	}
	p, err := s.setup(ctx)
	if err != nil {
		return g, err
	}
	// What the rule makes of any free block, apart from its node and version.
	next, err := driver.Block{}.Acquire(driver.Shorten(r, p.Description))
	if err != nil {
		return g, err
	}
	for try := 0; ; try++ {
		found, err := query(ctx, s, p.scan, s.statement(p.schema, acquireSQL),
			r.Nonce, p.ID, next.Start.Unix(), next.End.Unix(), r.Owner, earliest(r))
		switch {
		case code(err) == uniqueViolation: // the same request was sent twice
		case err != nil:
			return g, err
		default:
			if err := driver.CheckRequest(r, found[0].now); err != nil || found[0].block.Version > 0 {
				return lease.Grant(found[0].block), err
			}
			if !found[0].free {
				return g, fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, p.nodes.Blocks())
			}
		}
		if try == tries {
			return g, errNotWritten
		}
		// Whoever has locked the last free block may leave it free.
		if err := pause(ctx, try); err != nil {
			return g, err
		}
	}
}

// earliest is when, in microseconds of the server's clock, a client's request can be granted.
func earliest(r lease.Request) int64 { return r.Now.Add(-lease.MaxClockAhead).UnixMicro() }

// Renew implements [lease.Store]. It is one statement if the row is still what
// the grant says, and the client's clock is not ahead.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (_ lease.Grant, err error) {
	defer s.explain(ctx, fmt.Sprintf("renew node %d", g.Node), &err)
	return s.change(ctx, g, earliest(r), func(p *place, now row) (driver.Block, error) {
		if err := driver.CheckRequest(r, now.now); err != nil {
			return now.block, err
		}
		return now.block.Renew(g, driver.Shorten(r, p.Description))
	})
}

// Release implements [lease.Store]. It is one statement, as Renew is.
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) (err error) {
	defer s.explain(ctx, fmt.Sprintf("release node %d", g.Node), &err)
	_, err = s.change(ctx, g, 0, func(_ *place, now row) (driver.Block, error) { return now.block.Release(g, nonce, unused) })
	return err
}

// change replaces the block of g by what rule returns for it. It begins with the
// block that g says there is, once the server's clock has reached a microsecond. If the
// row differs or the time has not come, nothing is written, and rule decides on
// the row and the time that are read then.
func (s *Store) change(ctx context.Context, g lease.Grant, reached int64, rule func(*place, row) (driver.Block, error)) (lease.Grant, error) {
	p, err := s.setupFor(ctx, g.Node)
	if err != nil {
		return lease.Grant{}, err
	}
	now := row{block: driver.Block(g)}
	now.block.Nodes = p.BlockSize
	for range 5 {
		b := now.block
		next, err := rule(p, now)
		if err != nil {
			return lease.Grant{}, err
		}
		written, err := query(ctx, s, p.scan, s.statement(p.schema, replaceSQL),
			b.Node, p.ID, b.Version, b.Nonce, b.Owner, b.Start.Unix(), b.End.Unix(), next.Nonce, next.Owner, next.End.Unix(), reached)
		if err == nil && len(written) == 1 {
			return lease.Grant(written[0].block), nil
		}
		if err == nil {
			now, err = s.get(ctx, p, g.Node)
		}
		if err != nil {
			return lease.Grant{}, err
		}
		reached = 0
	}
	return lease.Grant{}, errNotWritten
}

// errNotWritten is returned if a row that could be written is not.
var errNotWritten = errors.New("the row was not written; does a rule, trigger or policy of the table interfere?")

// Get implements [lease.Store]. It needs the primary, too: it waits for what
// it reads to be durable.
func (s *Store) Get(ctx context.Context, node uint32) (_ lease.Grant, err error) {
	defer s.explain(ctx, fmt.Sprintf("get node %d", node), &err)
	p, err := s.setupFor(ctx, node)
	if err != nil {
		return lease.Grant{}, err
	}
	now, err := s.get(ctx, p, node)
	return lease.Grant(now.block), err
}

func (s *Store) get(ctx context.Context, p *place, node uint32) (row, error) {
	rows, err := query(ctx, s, p.scan, s.statement(p.schema, getSQL), node)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: the row of block %d is gone", lease.ErrReplaced, node)
	}
	if err != nil {
		return row{}, err
	}
	return rows[0], nil
}

// setupFor returns the store in use, if one of its blocks starts at node.
func (s *Store) setupFor(ctx context.Context, node uint32) (*place, error) {
	p, err := s.setup(ctx)
	if err == nil {
		_, err = p.nodes.Index(node)
	}
	return p, err
}
