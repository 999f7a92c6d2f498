package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// extra is a column that the exporter does not write.
type extra struct {
	name, definition string
	stored           bool // not of kind ALIAS
}

// index is a skip index that the new table does not have by default.
type index struct{ name, definition string }

// learnColumns reads the columns and skip indexes of the old table, and refuses
// a table without the exporter's columns.
func (m *migration) learnColumns(ctx context.Context, suffix string) error {
	have := map[string]string{}
	for _, c := range ddl.Columns {
		have[c[0]] = c[1]
	}
	found := map[string]string{}
	m.extra = nil
	err := m.rows(ctx, fmt.Sprintf("SELECT name, type, default_kind, default_expression, compression_codec\n"+
		"FROM system.columns WHERE database = %s AND table = %s ORDER BY position",
		m.InDatabase(), ddl.QuoteText(m.Named(suffix))), 5, func(c []string) error {
		name, kind := c[0], c[2]
		if _, ours := have[name]; ours {
			found[name] = c[1]
			return nil
		}
		if kind == "EPHEMERAL" {
			return fmt.Errorf("clickhouse: migrate: table %s has the EPHEMERAL column %s, which cannot be copied: "+
				"drop it; nothing was changed", m.Named(suffix), name)
		}
		e := extra{name: name, definition: c[1], stored: kind != "ALIAS"}
		if kind != "" {
			e.definition += " " + kind + " " + c[3]
		}
		if c[4] != "" {
			e.definition += " " + c[4]
		}
		m.extra = append(m.extra, e)
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range ddl.Columns {
		if found[c[0]] != c[1] {
			return fmt.Errorf("clickhouse: migrate: table %s is not the exporter's: column %s has type %q, not %q; nothing was changed",
				m.Named(suffix), c[0], found[c[0]], c[1])
		}
	}
	return m.learnIndexes(ctx, suffix)
}

// learnIndexes reads the skip indexes that the new table lacks and is to have.
func (m *migration) learnIndexes(ctx context.Context, suffix string) error {
	ours := m.Create("", "", 0, "")[0]
	m.skip = nil
	err := m.rows(ctx, fmt.Sprintf("SELECT name, expr, type_full, toString(granularity)\n"+
		"FROM system.data_skipping_indices WHERE database = %s AND table = %s",
		m.InDatabase(), ddl.QuoteText(m.Named(suffix))), 4, func(c []string) error {
		if !strings.HasPrefix(c[0], "auto_") && !strings.Contains(ours, "INDEX "+c[0]+" ") {
			m.skip = append(m.skip, index{c[0], fmt.Sprintf("(%s) TYPE %s GRANULARITY %s", c[1], c[2], c[3])})
		}
		return nil
	})
	return err
}

// addColumns gives a new table what the old one has besides the exporter's columns.
func (m *migration) addColumns(suffix string) []string {
	var all []string
	alter := "ALTER TABLE " + m.Quoted(suffix) + m.OnCluster()
	for _, e := range m.extra {
		all = append(all, alter+" ADD COLUMN IF NOT EXISTS "+ddl.QuoteName(e.name)+" "+e.definition)
	}
	for _, i := range m.skip {
		all = append(all, alter+" ADD INDEX IF NOT EXISTS "+ddl.QuoteName(i.name)+" "+i.definition)
	}
	return all
}

// columnNames is the list for an INSERT and its SELECT: all stored columns.
func (m *migration) columnNames() string {
	var more []string
	for _, e := range m.extra {
		if e.stored {
			more = append(more, e.name)
		}
	}
	return ddl.ColumnNames(more...)
}

// rows calls each for every row of n strings.
func (m *migration) rows(ctx context.Context, query string, n int, each func([]string) error) error {
	rows, err := m.db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.Named(""), err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		values, into := make([]string, n), make([]any, n)
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.Named(""), err)
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return rows.Err()
}
