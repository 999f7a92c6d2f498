package cli

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

// spans checks the tables of spans.
func (d *doctor) spans() {
	ctx, cancel := limited(d.cmd.Context())
	defer cancel()
	if err := d.clickhouse.with(ctx, d.spansOn); err != nil {
		d.report("ClickHouse", "", err)
	}
}

func (d *doctor) spansOn(db *sql.DB) error {
	version, err := within(d.cmd.Context(), func(ctx context.Context) (version string, err error) {
		err = db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
		return version, err
	})
	if err != nil {
		return err
	}
	d.report("ClickHouse", "version "+version, nil)
	status, err := within(d.cmd.Context(),
		func(ctx context.Context) (clickhouse.Status, error) {
			return clickhouse.Adoption{}.Status(ctx, db)
		})
	if err != nil {
		return err
	}
	for _, t := range status.Tables {
		d.table(t)
	}
	d.adoption(status)
	return nil
}

func (d *doctor) table(t clickhouse.TableStatus) {
	kept, ordered := "kept forever", "no spans"
	if t.TTL != "" {
		kept = "TTL " + t.TTL
	}
	if t.Sampled > 0 {
		ordered = fmt.Sprintf("%.0f %% of the newest IDs are ordered", 100*t.Ordered)
	}
	d.report("table", strings.Join([]string{t.Table, t.Engine, kept, ordered}, ", "), nil)
}

// adoption checks that an adoption has not stopped halfway, and that the lookup table is filled.
func (d *doctor) adoption(s clickhouse.Status) {
	first := s.Tables[0].Table
	if s.Problem != nil {
		if s.Phase > clickhouse.NotBegun && s.Phase < clickhouse.Finished {
			d.report("adoption", "", s.Problem)
		}
		return // or it is a Distributed table, which nothing is filled from
	}
	switch s.Phase {
	case clickhouse.Preparing, clickhouse.Prepared, clickhouse.Finishing:
		d.report("adoption", "", wrong("traceflake clickhouse: "+s.Phase.Next(),
			"the adoption of %s is %s", first, s.Phase))
	case clickhouse.Swapped:
		d.report("adoption", "swapped; `traceflake clickhouse adopt finish` ends it when the "+
			"old table is empty", nil)
	}
	if s.Fill != "" {
		d.report("lookup table", "", wrong("traceflake clickhouse "+s.Fill+
			", which creates and fills what is missing",
			"%s_trace_id_ts lacks traces, which are not found by ID", first))
	}
}
