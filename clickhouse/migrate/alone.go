package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// ErrTakenOver is returned if another migration of the same table began while this
// one ran. The other goes on from where this one stopped. Nothing is lost: wait
// until it has ended; a further run says whether anything is left to do.
var ErrTakenOver = errors.New("clickhouse: migrate: another migration of the table began and goes on in place of this one; nothing is lost")

// ErrNoTable is returned if there is no table to migrate.
var ErrNoTable = errors.New("clickhouse: migrate: there is no such table")

// takeOver makes this run the only one: every statement of an earlier run that is
// still active fails with ErrTakenOver before it is sent. The comment on _moving,
// which exists from a migration's first statement to its last, has the run's name.
func (m *migration) takeOver(ctx context.Context) error {
	run := rand.Text()
	if err := m.exec(ctx, "ALTER TABLE "+m.Quoted(moving)+" MODIFY COMMENT "+ddl.QuoteText(m.mark+runMark+run)); err != nil {
		return err
	}
	m.run = run
	return nil
}

// runMark separates the migration's mark from the run's name.
const runMark = "; run "

// isMine is a condition for the comment on a table of this migration.
func (m migration) isMine() string {
	return fmt.Sprintf("(comment = %s OR startsWith(comment, %s))", ddl.QuoteText(m.mark), ddl.QuoteText(m.mark+runMark))
}

// stillAlone returns ErrTakenOver if another run has taken over.
func (m migration) stillAlone(ctx context.Context) error {
	if m.run == "" {
		return nil
	}
	n, err := m.number(ctx, fmt.Sprintf("SELECT count() FROM system.tables WHERE database = %s AND name = %s AND comment = %s",
		m.InDatabase(), ddl.QuoteText(m.Named(moving)), ddl.QuoteText(m.mark+runMark+m.run)))
	if err == nil && n == 0 {
		err = ErrTakenOver
	}
	return err
}

// noTable explains that there is nothing to migrate.
func (m migration) noTable(ctx context.Context) error {
	var others []string
	err := m.rows(ctx, fmt.Sprintf("SELECT table FROM system.columns WHERE database = %s AND name = 'TraceId' AND table NOT LIKE '%%trace_id_ts%%' ORDER BY table LIMIT 10",
		m.InDatabase()), 1, func(c []string) error { others = append(others, c[0]); return nil })
	if err != nil {
		return err
	}
	hint := "no table there has a column TraceId"
	if len(others) > 0 {
		hint = "tables with a column TraceId are " + strings.Join(others, ", ")
	}
	return fmt.Errorf("%w: %s in database %s; %s. To create an empty table use create", ErrNoTable, m.Named(""), m.databaseName(), hint)
}

func (m migration) databaseName() string {
	if m.Database == "" {
		return "of the connection"
	}
	return m.Database
}

// checkSpace refuses to begin if the copy might not fit: the old rows stay until
// the operator drops them, so for a time the spans are stored twice. On a cluster
// it checks nothing: the copy is spread over other servers.
func (m migration) checkSpace(ctx context.Context) error {
	if m.Cluster != "" {
		return nil
	}
	var need, free float64
	query := fmt.Sprintf("SELECT (SELECT sum(toFloat64(bytes_on_disk)) FROM system.parts WHERE active AND database = %s AND table = %s),\n"+
		"(SELECT sum(toFloat64(unreserved_space)) FROM system.disks WHERE name IN\n"+
		"(SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name = 'default'))", m.InDatabase(), ddl.QuoteText(m.Named("")))
	if err := m.db.QueryRowContext(ctx, query).Scan(&need, &free); err != nil {
		return fmt.Errorf("clickhouse: migrate: query the free space: %w", err)
	}
	if free < need {
		return fmt.Errorf("clickhouse: migrate: table %s has %s on disk, its copy needs as much, and the disks of the storage policy default "+
			"have %s free: free space and run it again; nothing was changed", m.Named(""), size(need), size(free))
	}
	return nil
}

func size(bytes float64) string {
	const mib, gib = 1 << 20, 1 << 30
	if bytes < gib {
		return fmt.Sprintf("%.1f MiB", bytes/mib)
	}
	return fmt.Sprintf("%.1f GiB", bytes/gib)
}
