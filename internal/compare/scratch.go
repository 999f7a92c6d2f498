package compare

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed" // the query
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// Copies are two scratch tables with copies of the newest spans of somebody's table: one is
// defined as that table, and the other is what an adoption of it would create.
type Copies struct {
	Period
	Spans       uint64
	Needs, Free uint64   // bytes on disk
	Left        []string // tables of comparisons that were killed

	db     *sql.DB
	live   Table
	engine string // of the table, for a scratch table
}

//go:embed look.sql
var look string

// scratch is between the name of a table and a random text, in the names of scratch tables.
const scratch = "_compare_"

// Look returns the copies of the spans of some hours, and changes nothing. The error is that of an
// adoption if the table could not be adopted.
func Look(ctx context.Context, db *sql.DB, of clickhouse.Adoption, hours int) (*Copies, error) {
	of.PoliciesChecked = true
	if _, err := of.Prepare(ctx, db); err != nil {
		return nil, err
	}
	c := &Copies{db: db, live: Table{Name: cmp.Or(of.Table, "otel_traces"), Database: of.Database}}
	var ours bool
	var rows uint64
	var newest time.Time
	var bytes float64 // of a span
	err := db.QueryRowContext(ctx, strings.NewReplacer("{name}", text(c.live.Name), "{database}",
		text(of.Database), "{scratch}", text(c.live.Name+scratch)).Replace(look)).
		Scan(&c.live.Database, &ours, &c.engine, &rows, &newest, &bytes, &c.Free, &c.Left)
	switch {
	case err != nil:
		return nil, err
	case ours:
		return nil, errors.New("the table has the layout that it would be compared with: name " +
			"another one with --table")
	case rows == 0:
		return nil, errors.New("the table has no spans")
	}
	c.To = newest.Add(time.Second)
	c.From = c.To.Add(-time.Duration(hours) * time.Hour)
	err = db.QueryRowContext(ctx, "SELECT count() FROM "+c.live.quoted(c.live.Name)+" WHERE "+
		between(c.From, c.To)).Scan(&c.Spans)
	c.Needs = uint64(4 * bytes * float64(c.Spans)) // a merge stores a table twice
	return c, err
}

// String says what Run will do.
func (c *Copies) String() string {
	s := fmt.Sprintf("%d spans of %s from %s to %s (UTC) are copied into two tables next to it,\n"+
		"%s%s…, which are dropped at the end; this needs up to %.2f of %.0f GB that are free\n",
		c.Spans, c.live.Name, c.From.UTC().Format(time.DateTime), c.To.UTC().Format(time.DateTime),
		c.live.Name, scratch, float64(c.Needs)/1e9, float64(c.Free)/1e9)
	if len(c.Left) > 0 {
		s += "left by comparisons that run or were killed: " + strings.Join(c.Left, ", ") + "\n"
	}
	return s
}

// Run copies the spans, asks the questions of both tables, and drops them, also after an error or
// when ctx ends. Nothing else is changed.
func (c *Copies) Run(ctx context.Context) (tables []Table, err error) {
	name := c.live.Name + scratch + strings.ToLower(rand.Text()[:8])
	defer func() { err = errors.Join(err, c.drop(name)) }()
	theirs := Table{c.live.Name, c.live.Database, name, name + "_trace_id_ts", nil}
	ours := theirs
	ours.Title, ours.Name = "as adopted", name+"_other"
	// A statement that may create a table is not interrupted: it could go on after drop.
	whole := context.WithoutCancel(ctx)
	err = c.exec(whole, "CREATE TABLE "+theirs.quoted(theirs.Name)+" AS "+
		c.live.quoted(c.live.Name)+" ENGINE = "+c.engine)
	if err != nil {
		return nil, err
	}
	plan, err := clickhouse.Adoption{Database: theirs.Database, Table: theirs.Name,
		PoliciesChecked: true}.Prepare(ctx, c.db)
	if err != nil {
		return nil, err
	}
	plan.Steps = slices.DeleteFunc(plan.Steps, func(s clickhouse.Step) bool {
		return strings.Contains(s.Script(), " FUNCTION ") // they belong to the server
	})
	if err := plan.Run(whole, c.db, nil); err != nil {
		return nil, err
	}
	var statements []string // each short, so that they can be interrupted
	for from := c.From; from.Before(c.To); from = from.Add(5 * time.Minute) {
		of := c.live
		for _, t := range []Table{theirs, ours} {
			statements = append(statements, "INSERT INTO "+t.quoted(t.Name)+" SELECT * FROM "+
				of.quoted(of.Name)+" WHERE "+between(from, from.Add(5*time.Minute)))
			of = theirs // other spans of this time may arrive
		}
	}
	for _, name := range []string{theirs.Name, ours.Name, theirs.Lookup} {
		statements = append(statements, "OPTIMIZE TABLE "+theirs.quoted(name)+" FINAL")
	}
	if err := c.exec(ctx, statements...); err != nil {
		return nil, err
	}
	tables = []Table{theirs, ours}
	for i := range tables {
		if err := tables[i].Measure(ctx, c.db, c.Period, false); err != nil {
			return nil, err
		}
	}
	return tables, Differs(tables[0], tables[1])
}

// exec runs statements in order, up to the first that fails.
func (c *Copies) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := c.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// drop drops the scratch tables and views, whose names begin with a random one.
func (c *Copies) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var names []string // views first: they have longer names
	err := c.db.QueryRowContext(ctx, "SELECT arrayReverseSort(groupArray(name)) "+
		"FROM system.tables WHERE database = "+text(c.live.Database)+" AND startsWith(name, "+
		text(name)+")").Scan(&names)
	for i, name := range names {
		names[i] = "DROP TABLE IF EXISTS " + c.live.quoted(name) +
			" SYNC SETTINGS max_table_size_to_drop = 0"
	}
	if err == nil {
		err = c.exec(ctx, names...)
	}
	if err != nil {
		err = fmt.Errorf("drop the tables of %s whose names begin with %s: %w", c.live.Database,
			name, err)
	}
	return err
}
