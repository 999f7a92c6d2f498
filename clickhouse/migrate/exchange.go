package migrate

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// like creates a table of the old layout.
func (m *migration) like(suffix, original string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.Quoted(suffix) + " AS " + m.Quoted(original) + " COMMENT " + ddl.QuoteText(m.mark)
}

// exchange gives the new table the old one's name. The table _moving exists.
func (m *migration) exchange() []string {
	statements := m.Functions()
	if m.Cluster == "" {
		statements = append(statements, m.Create(remaining, "", m.TTL, "")...)
		statements = append(statements, m.addColumns(remaining)...)
	} else {
		statements = append(statements, m.Create(m.Rows(), "", m.TTL, "")[0])
		statements = append(statements, m.addColumns(m.Rows())...)
		statements = append(statements, m.Front(m.Rows(), remaining, ""))
	}
	return append(statements, "EXCHANGE TABLES "+m.Quoted("")+" AND "+m.Quoted(remaining))
}

// prepare creates the tables through which partitions are moved. left is false if
// an earlier run has moved everything.
func (m *migration) prepare(ctx context.Context) (left bool, err error) {
	for _, suffix := range []string{remaining, old} {
		if err := m.drain(ctx, suffix); err != nil {
			return false, err
		}
	}
	if left, err = m.isThere(ctx, remaining); err != nil || !left {
		return false, err
	}
	if err := m.exec(ctx, append(m.createCopy(), m.like(old, remaining))...); err != nil {
		return false, err
	}
	// No TTL: rows must not vanish between a copy and its count.
	ttl, err := m.hasTTL(ctx, moving)
	if err != nil || !ttl {
		return true, err
	}
	return true, m.exec(ctx, m.removeTTL())
}

func (m *migration) removeTTL() string { return "ALTER TABLE " + m.Quoted(moving) + " REMOVE TTL" }

func (m *migration) hasTTL(ctx context.Context, suffix string) (bool, error) {
	n, err := m.number(ctx, fmt.Sprintf("SELECT countIf(match(engine_full, ' TTL ')) FROM system.tables WHERE database = %s AND name = %s",
		m.InDatabase(), ddl.QuoteText(m.Named(suffix))))
	return n > 0, err
}

// drain waits for statements on a table that began earlier: inserts that found it
// under its old name, and statements of an earlier run that got no response. The
// table then has what they wrote. DETACH with SYNC is the only statement that
// waits and destroys nothing.
func (m *migration) drain(ctx context.Context, suffix string) error {
	there, err := m.isThere(ctx, suffix)
	if err != nil {
		return err
	}
	if there {
		if err := m.exec(ctx, m.detach(suffix)); err != nil {
			return err
		}
	} else { // did an earlier run get no further?
		n, err := m.detached(ctx, suffix)
		if err != nil || n == 0 {
			return err
		}
	}
	return m.exec(ctx, m.attach(suffix))
}

// detached counts tables of this name that an earlier run has detached.
func (m *migration) detached(ctx context.Context, suffix string) (uint64, error) {
	return m.number(ctx, fmt.Sprintf("SELECT count() FROM system.detached_tables WHERE database = %s AND table = %s",
		m.InDatabase(), ddl.QuoteText(m.Named(suffix))))
}

func (m *migration) detach(suffix string) string { return "DETACH TABLE " + m.Quoted(suffix) + " SYNC" }
func (m *migration) attach(suffix string) string { return "ATTACH TABLE " + m.Quoted(suffix) }
