package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// row is a block as a statement read or wrote it.
type row struct {
	driver.Block
	now time.Time // by the server's clock
}

// scan reads the columns of [columnsSQL] and what may follow them. The row must belong to the store
// in use.
func (d *description) scan(r pgx.CollectableRow) (row, error) {
	var now, version, from, until int64
	var store, durable string
	var b driver.Block
	var locked bool
	columns := []any{&now, &store, &b.Node, &version, &b.Nonce, &b.Owner, &from, &until, &durable, &locked}
	if err := r.Scan(columns[:len(r.FieldDescriptions())]...); err != nil {
		return row{}, err
	}
	if locked {
		return row{}, errNotWritten
	}
	b.Nodes, b.Version, b.Start, b.End = d.BlockSize, uint64(version), second(from), second(until)
	return row{b, time.UnixMicro(now)}, d.same(store)
}

// Acquire implements [lease.Store]. It grants the block that has been free for longest, in one
// statement, or more if other clients want the last free blocks at this moment.
func (s *store) Acquire(ctx context.Context, r lease.Request) (_ lease.Grant, err error) {
	defer explain(ctx, "acquire", &err)
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, err
	}
	d, err := s.open(ctx)
	if err != nil {
		return lease.Grant{}, err
	}
	// What the rule grants of any free block, apart from its node and version.
	next, err := driver.Block{}.Acquire(driver.Shorten(r, d.Description))
	if err != nil {
		return lease.Grant{}, err
	}
	found, err := one(ctx, s, d.scan, s.sql(acquireSQL),
		r.Nonce, d.ID, next.Start.Unix(), next.End.Unix(), r.Owner, earliest(r))
	if err == nil {
		err = driver.CheckRequest(r, found.now)
	}
	if err == nil && found.Version == 0 {
		err = fmt.Errorf("%w: all %d are granted", lease.ErrNoFreeNode, driver.RangeOf(d.Description).Blocks())
	}
	return lease.Grant(found.Block), err
}

// earliest is the microsecond of the server's clock at which a client's request can be granted.
func earliest(r lease.Request) int64 { return r.Now.Add(-lease.MaxClockAhead).UnixMicro() }

// Renew implements [lease.Store]. It is one statement if the row is still what
// the grant says, and the client's clock is not ahead.
func (s *store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (_ lease.Grant, err error) {
	defer explain(ctx, fmt.Sprintf("renew node %d", g.Node), &err)
	return s.change(ctx, g, earliest(r), func(d *description, found row) (driver.Block, error) {
		if err := driver.CheckRequest(r, found.now); err != nil {
			return found.Block, err
		}
		return found.Renew(g, driver.Shorten(r, d.Description))
	})
}

// Release implements [lease.Store]. It is one statement, as Renew is.
func (s *store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) (err error) {
	defer explain(ctx, fmt.Sprintf("release node %d", g.Node), &err)
	_, err = s.change(ctx, g, 0, func(_ *description, found row) (driver.Block, error) { return found.Release(g, nonce, unused) })
	return err
}

// change replaces the block of g by what rule returns for it. It assumes first that the row is as g has
// it, and that the server's clock has reached a microsecond. Otherwise nothing is written, and rule
// decides on the row and the time that are read then.
func (s *store) change(ctx context.Context, g lease.Grant, reached int64, rule func(*description, row) (driver.Block, error)) (lease.Grant, error) {
	d, err := s.openFor(ctx, g.Node)
	if err != nil {
		return lease.Grant{}, err
	}
	found := row{Block: driver.Block(g)}
	found.Nodes = d.BlockSize
	for range 5 {
		b := found.Block
		next, err := rule(d, found)
		if err != nil {
			return lease.Grant{}, err
		}
		written, err := one(ctx, s, d.scan, s.sql(replaceSQL),
			b.Node, d.ID, b.Version, b.Nonce, b.Owner, b.Start.Unix(), b.End.Unix(), next.Nonce, next.Owner, next.End.Unix(), reached)
		if !errors.Is(err, pgx.ErrNoRows) {
			return lease.Grant(written.Block), err
		}
		if found, err = one(ctx, s, d.scan, s.sql(getSQL), b.Node); err != nil {
			return lease.Grant{}, err
		}
		reached = 0
	}
	return lease.Grant{}, errNotWritten
}

// Get implements [lease.Store]. It needs the primary, too: it waits for what
// it reads to be durable.
func (s *store) Get(ctx context.Context, node uint32) (_ lease.Grant, err error) {
	defer explain(ctx, fmt.Sprintf("get node %d", node), &err)
	d, err := s.openFor(ctx, node)
	if err != nil {
		return lease.Grant{}, err
	}
	found, err := one(ctx, s, d.scan, s.sql(getSQL), node)
	return lease.Grant(found.Block), err
}

// openFor returns the store in use, if one of its blocks begins at node.
func (s *store) openFor(ctx context.Context, node uint32) (*description, error) {
	d, err := s.open(ctx)
	if err == nil {
		_, err = driver.RangeOf(d.Description).Index(node)
	}
	return d, err
}

// second is the time of a second since 1970, and the zero Time that of 0.
func second(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
